"""Projects: what a program can ask about one."""

from collections.abc import Mapping

from holdfast.scheduling.json import Json, JsonValue
from holdfast.scheduling.machines import zones_of
from holdfast.simulator.clouds.catalogue import Call, Invoke
from holdfast.simulator.clouds.gcp.names import PROJECT_NUMBER, asked_project
from holdfast.simulator.errors import RehearsalError


def _project(call: Call) -> Json:
    name = str(call.arguments.get("projectId") or asked_project(call))
    nothing: Json = dict.fromkeys(("billingAccount", "folderId", "orgId"), "")
    labels: Json = {"labels": {}, "effectiveLabels": {}, "pulumiLabels": {}, "tags": {}}
    return {
        **nothing,
        **labels,
        "autoCreateNetwork": False,
        "deletionPolicy": "PREVENT",
        "id": f"projects/{name}",
        "name": name,
        "number": PROJECT_NUMBER,
        "projectId": name,
    }


def _zones(call: Call) -> Json:
    region = call.arguments.get("region") or call.configuration.get("region")
    project = asked_project(call)
    names: list[JsonValue] = [*zones_of(str(region))]
    return {
        **call.arguments,
        "id": f"projects/{project}/regions/{region}",
        "names": names,
        "project": project,
        "region": region,
    }


def _machine_types(call: Call) -> Json:
    zone = call.arguments.get("zone")
    raise RehearsalError(f"a rehearsal knows not what {zone} sells: Compute Engine alone does")


def _engine_versions(call: Call) -> Json:
    location = call.arguments.get("location")
    raise RehearsalError(f"a rehearsal knows not which versions {location} has this week: GKE alone does")


INVOKES: Mapping[str, Invoke] = {
    "gcp:compute/getMachineTypes:getMachineTypes": _machine_types,
    "gcp:compute/getZones:getZones": _zones,
    "gcp:container/getEngineVersions:getEngineVersions": _engine_versions,
    "gcp:organizations/getProject:getProject": _project,
}
