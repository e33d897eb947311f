"""The Google Cloud catalogue: all resource rules, functions, and project data."""

from collections.abc import Mapping

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.machines import zones_of
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Catalogue, Invoke, Messages, ResourceRequest
from pulumi_holdfast.rehearsal.clouds.gcp import cluster, federation, iam, network, node_pools, storage
from pulumi_holdfast.rehearsal.clouds.gcp.api_server import refuse_connection, where_from
from pulumi_holdfast.rehearsal.clouds.gcp.instances import machines_of
from pulumi_holdfast.rehearsal.clouds.gcp.names import PROJECT_NUMBER, asked_project, project
from pulumi_holdfast.rehearsal.clouds.gcp.nodes import NODE_POOL
from pulumi_holdfast.rehearsal.clouds.relations import only_real


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


def _client_config(call: Call) -> Json:
    region = call.configuration.get("region")
    return {
        "accessToken": "simulated",
        "defaultLabels": {},
        "id": f"projects/{asked_project(call)}/regions/{region}",
        "project": asked_project(call),
        "region": region,
        "zone": call.configuration.get("zone") or "",
    }


INVOKES: Mapping[str, Invoke] = {
    "gcp:cloudquota/getSQuotaInfos:getSQuotaInfos": only_real("the quotas of {arguments[parent]} are"),
    "gcp:compute/getMachineTypes:getMachineTypes": only_real("the machine types of {arguments[zone]} are"),
    "gcp:compute/getZones:getZones": _zones,
    "gcp:container/getEngineVersions:getEngineVersions": only_real(
        "the GKE versions of {arguments[location]} are"
    ),
    "gcp:organizations/getClientConfig:getClientConfig": _client_config,
    "gcp:organizations/getProject:getProject": _project,
}


def _all_labels(request: ResourceRequest) -> JsonValue:
    """All labels: the provider's defaults, the object's own, and Pulumi's mark."""
    labels: dict[str, JsonValue] = {"goog-pulumi-provisioned": "true"}
    for given in (request.configuration.get("defaultLabels"), request.inputs.get("labels")):
        if isinstance(given, Mapping):
            labels.update(given)
    return labels


CATALOGUE = Catalogue(
    resources={
        **cluster.RESOURCES,
        **federation.RESOURCES,
        **iam.RESOURCES,
        **network.RESOURCES,
        **node_pools.RESOURCES,
        **storage.RESOURCES,
    },
    invokes={**INVOKES, **cluster.INVOKES, **network.INVOKES, **storage.INVOKES},
    common={"project": project, "effectiveLabels": _all_labels, "pulumiLabels": _all_labels},
    scopes=frozenset({"project", "location", "region", "zone", "cluster"}),
    fleets={NODE_POOL: machines_of},
    refuse_connection=refuse_connection,
    remarks=where_from,
    messages=Messages(
        taken="googleapi: Error 409: The resource {type} '{name}' already exists, alreadyExists",
        missing="googleapi: Error 404: The resource {type} '{id}' was not found, notFound",
    ),
)
