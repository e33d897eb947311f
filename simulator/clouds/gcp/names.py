"""The project of the simulator, and the names of its service agents."""

from typing import Final

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.catalogue import Call, ResourceRequest

# The default project, and the number of all projects.
PROJECT: Final = "rehearsal"
PROJECT_NUMBER: Final = "123456789012"


def project_of(inputs: Json, configuration: Json) -> str:
    """Return the project of inputs: their own, or the provider's."""
    for values in (inputs, configuration):
        given = values.get("project")
        if isinstance(given, str) and given:
            return given
    return PROJECT


def project(request: ResourceRequest) -> str:
    """Return the project of an object."""
    return project_of(request.inputs, request.configuration)


def asked_project(call: Call) -> str:
    """Return the project of a function call."""
    return project_of(call.arguments, call.configuration)


def storage_agent() -> str:
    """Return Cloud Storage's service agent, which uses encryption keys."""
    return f"service-{PROJECT_NUMBER}@gs-project-accounts.iam.gserviceaccount.com"
