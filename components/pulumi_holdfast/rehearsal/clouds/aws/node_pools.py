"""EKS managed node groups: prerequisites, launch templates, and the nodes that join the cluster."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.labels import ARCH, INSTANCE_TYPE, OS, ZONE
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.rehearsal.clouds.aws.cluster import (
    ADDON,
    NODE_GROUP,
    cluster_of,
    no_cluster,
    policies_of,
    role_of,
    trusts,
)
from pulumi_holdfast.rehearsal.clouds.aws.names import region
from pulumi_holdfast.rehearsal.clouds.aws.network import SUBNET
from pulumi_holdfast.rehearsal.clouds.aws.offerings import zones
from pulumi_holdfast.rehearsal.clouds.catalogue import ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.machines import (
    REGION,
    MachineGroup,
    SimulatedMachine,
    node_taint,
    whole_number,
)
from pulumi_holdfast.rehearsal.clouds.relations import owned

# Each of these policies is sufficient for a node to join.
_JOINING: Final = frozenset({"AmazonEKSWorkerNodePolicy", "AmazonEKSWorkerNodeMinimalPolicy"})


def _not_trusting(request: ResourceRequest) -> str | None:
    arn = request.inputs.get("nodeRoleArn")
    if trusts(role_of(arn, request.inventory), "ec2"):
        return None
    return (
        "InvalidParameterException: Following required service principals [ec2.amazonaws.com] were not found in the "
        f"trust relationships of nodeRole {arn}"
    )


def _nodes_cannot_join(request: ResourceRequest) -> str | None:
    role = role_of(request.inputs.get("nodeRoleArn"), request.inventory)
    if role is not None and _JOINING & policies_of(role, request.inventory):
        return None
    return _failed(request, "NodeCreationFailure: Instances failed to join the kubernetes cluster")


def _nodes_without_network(request: ResourceRequest) -> str | None:
    """Nodes become ready with a network plugin: the add-on, or the self-managed one of EKS."""
    cluster, name = cluster_of(request), request.inputs.get("clusterName")
    addons = {str(one.inputs.get("addonName")) for one in owned(request.inventory, ADDON, clusterName=name)}
    own = cluster is not None and cluster.inputs.get("bootstrapSelfManagedAddons") is not False
    if own or {"vpc-cni", "kube-proxy"} <= addons:
        return None
    return _failed(request, "NodeCreationFailure: Unhealthy nodes in the kubernetes cluster")


def _failed(request: ResourceRequest, reason: str) -> str:
    return (
        f"waiting for EKS Node Group ({request.id}) create: unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. "
        f"last error: {reason}"
    )


def _version(request: ResourceRequest) -> JsonValue:
    """The default version is the cluster's."""
    cluster = cluster_of(request)
    return request.inputs.get("version") or (cluster.outputs.get("version") if cluster else None) or ""


def _release_version(request: ResourceRequest) -> JsonValue:
    """A group keeps its image release until the release or the version changes in its inputs."""
    current = request.inventory.find(request.type, request.id)
    kept = current.outputs.get("releaseVersion") if current else None
    version = str(_version(request))
    return request.inputs.get("releaseVersion") or (
        kept if str(kept).startswith(f"{version}.") else f"{version}.0-20260101"
    )


def _resources(request: ResourceRequest) -> JsonValue:
    return [{"autoscalingGroups": [{"name": f"eks-{request.name}-{request.digest[:8]}"}]}]


RESOURCES: Mapping[str, Rules] = {
    NODE_GROUP: Rules(
        longest_name=63,
        computed={
            "releaseVersion": _release_version,
            "resources": _resources,
            "status": lambda _: "ACTIVE",
            "version": _version,
        },
        taken="ResourceInUseException: NodeGroup already exists with name {name} in this cluster",
        refuse_create=(no_cluster, _not_trusting, _nodes_cannot_join, _nodes_without_network),
    )
}


# EKS's default instance type, and its capacity.
_DEFAULT_TYPE: Final = "t3.medium"
_DEFAULT_CAPACITY: Final = {"cpu": "2", "memory": "4096Mi"}


def machines_of(group: MachineGroup) -> Sequence[SimulatedMachine]:
    """Return the machines of a node group: its desired size, round robin over its subnets."""
    inputs = group.target.inputs
    count = whole_number(mapping(inputs.get("scalingConfig")).get("desiredSize"))
    return [_machine(group, index) for index in range(count)]


def _machine(group: MachineGroup, index: int) -> SimulatedMachine:
    inputs = group.target.inputs
    where = region(inputs, {"region": _region_of_arn(group)})
    zone = _zone(group, index, where)
    identity = hashlib.sha256(f"{group.target.digest or group.target.id}|{index}".encode()).hexdigest()[:17]
    name = f"i-{identity}.{where}.compute.internal"
    machine = _machine_type(inputs)
    labels: dict[str, str] = {
        "kubernetes.io/hostname": name,
        ARCH: "amd64",
        OS: "linux",
        ZONE: zone,
        REGION: where,
        INSTANCE_TYPE: machine,
        "eks.amazonaws.com/nodegroup": _name(group),
        "eks.amazonaws.com/capacityType": str(inputs.get("capacityType") or "ON_DEMAND"),
        **{key: str(value) for key, value in mapping(inputs.get("labels")).items()},
    }
    return SimulatedMachine(
        name=name,
        provider_id=f"aws:///{zone}/i-{identity}",
        labels=labels,
        capacity=_capacity(machine),
        taints=tuple(node_taint(mapping(each)) for each in sequence(inputs.get("taints"))),
    )


def _name(group: MachineGroup) -> str:
    return str(group.target.outputs.get("nodeGroupName") or group.target.id.rpartition(":")[2])


def _zone(group: MachineGroup, index: int, where: str) -> str:
    subnets = sequence(group.target.inputs.get("subnetIds"))
    if subnets:
        found = group.inventory.find(SUBNET, str(subnets[index % len(subnets)]))
        zone = found.outputs.get("availabilityZone") if found is not None else None
        if zone:
            return str(zone)
    # Of a subnet that is not in the state.
    known = zones(where)
    return known[index % len(known)]


def _region_of_arn(group: MachineGroup) -> JsonValue:
    """The region in the ARN, because the state does not contain the provider's configuration."""
    parts = str(group.target.outputs.get("arn", "")).split(":")
    return parts[3] if len(parts) > 3 else None


def _machine_type(inputs: Json) -> str:
    return next((str(each) for each in sequence(inputs.get("instanceTypes"))), _DEFAULT_TYPE)


def _capacity(machine: str) -> dict[str, str]:
    known = machine_catalogue("aws").get(machine)
    held = {"cpu": str(known.vcpus), "memory": f"{known.memory_mib}Mi"} if known else dict(_DEFAULT_CAPACITY)
    return {**held, "pods": "110"}


_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


def _latest_version(request: ResourceRequest) -> int:
    """Each change of a template creates a version; tags are not part of it."""
    current = request.inventory.find(_TEMPLATE, request.id) if request.id else None
    if current is None:
        return 1
    before = whole_number(current.computed.get("latestVersion")) or 1
    same = _launched(current.inputs) == _launched(request.inputs)
    return before if same else before + 1


def _launched(inputs: Mapping[str, object]) -> Mapping[str, object]:
    apart = {"defaultVersion", "tags", "updateDefaultVersion"}
    return {name: value for name, value in inputs.items() if name not in apart}


def _default_version(request: ResourceRequest) -> int:
    if request.inputs.get("updateDefaultVersion") is True:
        return _latest_version(request)
    return whole_number(request.inputs.get("defaultVersion")) or 1


LAUNCH_TEMPLATES: Mapping[str, Rules] = {
    _TEMPLATE: Rules(
        longest_name=128,
        computed={"latestVersion": _latest_version, "defaultVersion": _default_version},
        taken="InvalidLaunchTemplateName.AlreadyExistsException: Launch template name already in use.",
    ),
    "aws:ec2/placementGroup:PlacementGroup": Rules(
        longest_name=255,
        computed={"placementGroupId": lambda request: f"pg-{request.digest[:17]}"},
        taken="InvalidPlacementGroup.Duplicate: The placement group '{name}' already exists.",
    ),
}
