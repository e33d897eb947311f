"""Managed node groups: what their nodes need to join."""

from collections.abc import Mapping
from typing import Final

from holdfast.scheduling.json import JsonValue
from holdfast.simulator.clouds.aws.eks.belonging import (
    ADDON,
    NODE_GROUP,
    belonging_to,
    cluster_of,
    no_cluster,
    policies_of,
    role_of,
    trusts,
)
from holdfast.simulator.clouds.catalogue import Making, Rules

# Each alone lets a node join: the first knows what the second is for, and more.
_JOINING: Final = frozenset({"AmazonEKSWorkerNodePolicy", "AmazonEKSWorkerNodeMinimalPolicy"})


def _not_trusting(making: Making) -> str | None:
    arn = making.inputs.get("nodeRoleArn")
    if trusts(role_of(arn, making.inventory), "ec2"):
        return None
    return (
        "InvalidParameterException: Following required service principals [ec2.amazonaws.com] were not found in the "
        f"trust relationships of nodeRole {arn}"
    )


def _disk_said_twice(making: Making) -> str | None:
    if making.inputs.get("launchTemplate") and making.inputs.get("diskSize"):
        return "InvalidParameterException: Disk size must be specified within the launch template."
    return None


def _nodes_cannot_join(making: Making) -> str | None:
    role = role_of(making.inputs.get("nodeRoleArn"), making.inventory)
    if role is not None and _JOINING & policies_of(role, making.inventory):
        return None
    return _failed(making, "NodeCreationFailure: Instances failed to join the kubernetes cluster")


def _nodes_without_network(making: Making) -> str | None:
    """Nodes get ready by a network plugin: the add-on, or what EKS put into the cluster when it was not told to not."""
    cluster, name = cluster_of(making), making.inputs.get("clusterName")
    addons = {str(one.inputs.get("addonName")) for one in belonging_to(name, ADDON, making.inventory)}
    own = cluster is not None and cluster.inputs.get("bootstrapSelfManagedAddons") is not False
    if own or {"vpc-cni", "kube-proxy"} <= addons:
        return None
    return _failed(making, "NodeCreationFailure: Unhealthy nodes in the kubernetes cluster")


def _failed(making: Making, reason: str) -> str:
    return (
        f"waiting for EKS Node Group ({making.id}) create: unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. "
        f"last error: {reason}"
    )


def _version(making: Making) -> JsonValue:
    """A group that names no version has its cluster's."""
    cluster = cluster_of(making)
    return making.inputs.get("version") or (cluster.outputs.get("version") if cluster else None) or ""


def _release_version(making: Making) -> JsonValue:
    """A group keeps the release of its image until it is told another one, or its version changes."""
    current = making.inventory.find(making.type, making.id)
    kept = current.outputs.get("releaseVersion") if current else None
    version = str(_version(making))
    return making.inputs.get("releaseVersion") or (
        kept if str(kept).startswith(f"{version}.") else f"{version}.0-20260101"
    )


def _resources(making: Making) -> JsonValue:
    return [{"autoscalingGroups": [{"name": f"eks-{making.name}-{making.digest[:8]}"}]}]


RESOURCES: Mapping[str, Rules] = {
    NODE_GROUP: Rules(
        longest_name=63,
        immutable=frozenset(
            {
                "amiType",
                "capacityType",
                "diskSize",
                "instanceTypes",
                "launchTemplate.id",
                "launchTemplate.name",
                "nodeRoleArn",
                "remoteAccess",
                "subnetIds",
            }
        ),
        computed={
            "releaseVersion": _release_version,
            "resources": _resources,
            "status": lambda _: "ACTIVE",
            "version": _version,
        },
        taken="ResourceInUseException: NodeGroup already exists with name {name} in this cluster",
        refuse_create=(
            no_cluster,
            _not_trusting,
            _disk_said_twice,
            _nodes_cannot_join,
            _nodes_without_network,
        ),
    ),
}
