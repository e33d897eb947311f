"""What Google Cloud calls a project and the accounts in it."""

from typing import Final

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.catalogue import Call, ResourceRequest

# A project that is nobody's, and its number. The number of every other project is the same here.
PROJECT: Final = "rehearsal"
PROJECT_NUMBER: Final = "123456789012"


def project_of(inputs: Json, configuration: Json) -> str:
    """Return the project that something is in: its own, or its provider's."""
    for values in (inputs, configuration):
        given = values.get("project")
        if isinstance(given, str) and given:
            return given
    return PROJECT


def project(request: ResourceRequest) -> str:
    """Return the project that an object is made in."""
    return project_of(request.inputs, request.configuration)


def asked_project(call: Call) -> str:
    """Return the project that a function is asked about."""
    return project_of(call.arguments, call.configuration)


def storage_agent() -> str:
    """Return the account that Cloud Storage uses keys as."""
    return f"service-{PROJECT_NUMBER}@gs-project-accounts.iam.gserviceaccount.com"
