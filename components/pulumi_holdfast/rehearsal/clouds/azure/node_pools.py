"""AKS agent pools: computed outputs, and the changes that AKS refuses."""

from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.azure.cluster import CLUSTER
from pulumi_holdfast.rehearsal.clouds.azure.instances import REGISTER
from pulumi_holdfast.rehearsal.clouds.azure.names import asked_cluster_id, cluster_id, guid, no_parent, said
from pulumi_holdfast.rehearsal.clouds.azure.nodes import (
    AGENT_POOL,
    PRIORITY,
    SPOT_TAINT,
    pool_of,
    template_of,
)
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Invoke, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.relations import find, needs_at
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.errors import RehearsalError

#: The immutable fields that the provider does not replace a pool for.
_FIXED: Final = (
    "availabilityZones",
    "capacityReservationGroupID",
    "osDiskSizeGB",
    "osDiskType",
    "scaleSetPriority",
    "scaleSetEvictionPolicy",
    "spotMaxPrice",
    "vnetSubnetID",
)


def node_labels(request: ResourceRequest) -> JsonValue:
    """Return the labels of a pool, with AKS's label of spot pools."""
    own = {PRIORITY: "spot"} if _is_spot(request.inputs) else {}
    return {**mapping(request.inputs.get("nodeLabels")), **own}


def node_taints(request: ResourceRequest) -> JsonValue:
    """Return the taints of a pool, with AKS's taint of spot pools."""
    given = [*sequence(request.inputs.get("nodeTaints"))]
    return [*given, SPOT_TAINT] if _is_spot(request.inputs) and SPOT_TAINT not in given else given


def effective(inputs: Json) -> Json:
    """Return the inputs of a pool with AKS's defaults for immutable fields."""
    is_spot = _is_spot(inputs)
    return {
        **inputs,
        "scaleSetPriority": "Spot" if is_spot else "Regular",
        "scaleSetEvictionPolicy": inputs.get("scaleSetEvictionPolicy") or ("Delete" if is_spot else None),
        "spotMaxPrice": inputs.get("spotMaxPrice") or (-1 if is_spot else None),
    }


def pool_path(request: ResourceRequest) -> str:
    """Return the id of a pool."""
    return f"{cluster_id(request)}/agentPools/{request.name}"


def _cluster_of(request: ResourceRequest) -> CloudObject | None:
    return find(request.inventory, CLUSTER, cluster_id(request))


def _is_spot(inputs: Json) -> bool:
    return inputs.get("scaleSetPriority") == "Spot"


def _fixed(request: ResourceRequest) -> str | None:
    current = request.inventory.find(request.type, request.id)
    if current is None:
        return None
    before, after = effective(current.inputs), effective(request.inputs)
    for name in _FIXED:
        if before.get(name) != after.get(name):
            return said("PropertyChangeNotAllowed", f"Changing property 'properties.{name}' is not allowed.")
    return None


def current_count(pool: CloudObject, inventory: Inventory) -> int:
    """Return the number of nodes of a pool: the autoscaler changes it after the creation."""
    found = pool_of(pool, inventory)
    if found is None:
        return 0
    return len(REGISTER.instances_of(pool, template_of(found), inventory))


def _scaled_by_hand(request: ResourceRequest) -> str | None:
    """An update sends a number of nodes, which must be the current one of an autoscaled pool."""
    current = request.inventory.find(request.type, request.id)
    if current is None or request.inputs.get("enableAutoScaling") is not True:
        return None
    if request.inputs.get("count") == current_count(current, request.inventory):
        return None
    return said(
        "InvalidParameter",
        f"Cannot manually scale AgentPool '{request.name}' of an AKS cluster with cluster autoscaler enabled. Please "
        "disable cluster autoscaler in the cluster to manually scale.",
    )


def _kept_inputs(request: ResourceRequest) -> Json:
    """Return the inputs with the number of nodes at creation: later ones are records of machines."""
    current = request.inventory.find(request.type, request.id)
    if current is None or request.inputs.get("enableAutoScaling") is not True:
        return request.inputs
    return {**request.inputs, "count": current.inputs.get("count")}


def _get(call: Call) -> Json:
    path = f"{asked_cluster_id(call)}/agentPools/{call.arguments.get('agentPoolName')}"
    found = find(call.inventory, AGENT_POOL, path)
    if found is None:
        raise RehearsalError(said("ResourceNotFound", f"The Resource '{path}' was not found."))
    return {**found.outputs, "id": found.id, "count": current_count(found, call.inventory)}


INVOKES: Mapping[str, Invoke] = {"azure-native:containerservice:getAgentPool": _get}


def _version(request: ResourceRequest) -> JsonValue:
    """The version of a pool's nodes: its own or its cluster's."""
    cluster = _cluster_of(request)
    asked = str(request.inputs.get("orchestratorVersion") or "")
    running = str(cluster.outputs.get("currentKubernetesVersion") or "") if cluster else ""
    return running if not asked or running.startswith(f"{asked}.") else asked


RESOURCES: Mapping[str, Rules] = {
    AGENT_POOL: Rules(
        name_property="agentPoolName",
        unique_within=("resourceGroupName", "resourceName"),
        longest_name=12,
        identify=pool_path,
        # The fields that azure-native replaces a pool for; AKS refuses other changes.
        immutable=frozenset({"gpuInstanceProfile", "networkProfile.nodePublicIPTags", "vmSize"}),
        computed={
            "currentOrchestratorVersion": _version,
            "eTag": lambda request: guid(request, "etag"),
            "nodeImageVersion": lambda _: "AKSUbuntu-2404gen2containerd",
            # azure-native compares answers of Azure, so the added values are no drift.
            "nodeLabels": node_labels,
            "nodeTaints": node_taints,
            "powerState": lambda request: request.inputs.get("powerState") or {"code": "Running"},
            "scaleSetEvictionPolicy": lambda request: effective(request.inputs)["scaleSetEvictionPolicy"],
            "spotMaxPrice": lambda request: effective(request.inputs)["spotMaxPrice"],
        },
        refuse_create=(needs_at(CLUSTER, cluster_id, no_parent("managedClusters/agentPools")),),
        keeps=_kept_inputs,
        refuse_update=(_fixed, _scaled_by_hand),
    )
}
