"""What a node's state means for the pods on it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from holdfast.fallback.jobs.values import condition_of, mapping, metadata_of, name_of, objects, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.scheduling.json import Json


class NodeState(StrEnum):
    """How it stands with a node."""

    LIVE = "Live"
    DRAINING = "Draining"  #: it still runs its pods, and will not for long
    UNREACHABLE = "Unreachable"  #: its kubelet has stopped answering
    GONE = "Gone"  #: its machine is known to be gone for good
    UNKNOWN = "Unknown"  #: there is no such node: gone, or not seen yet


# Taints by which those who empty a node say so: Karpenter, the cluster autoscaler of GKE and AKS, and whoever declares
# a machine lost by hand.
_DRAIN_TAINTS: Final = frozenset(
    {"karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler", "node.kubernetes.io/out-of-service"}
)
_UNREACHABLE_TAINT: Final = "node.kubernetes.io/unreachable"
# How a kubelet explains that it is not ready, when its machine was told to end (GKE's graceful shutdown).
_SHUTTING_DOWN: Final = "node is shutting down"
_KARPENTER: Final = "karpenter.sh/nodepool"


def state_of_node(name: str, nodes: Mapping[str, Json], claims: Mapping[str, Json] | None) -> NodeState:
    """Return how it stands with a node. `claims`: NodeClaims by node name, None where the cluster has none.

    A node that is not there is UNKNOWN: pods and nodes are watched apart, and a pod may be seen before its node.
    """
    node = nodes.get(name)
    if node is None:
        return NodeState.UNKNOWN
    silent = _is_silent(node)
    if silent:
        return NodeState.GONE if _has_lost_its_machine(node, claims) else NodeState.UNREACHABLE
    return NodeState.DRAINING if _is_draining(node, claims) else NodeState.LIVE


def _is_silent(node: Json) -> bool:
    ready = condition_of(node, "Ready")
    # "Unknown" is the node controller's word for a kubelet that has not answered; "False" is the kubelet's own.
    return ready.get("status") == "Unknown" or _UNREACHABLE_TAINT in _taints(node)


def _is_draining(node: Json, claims: Mapping[str, Json] | None) -> bool:
    claim = (claims or {}).get(name_of(node), mapping(None))
    going = metadata_of(node).get("deletionTimestamp") or metadata_of(claim).get("deletionTimestamp")
    return bool(going) or bool(_taints(node) & _DRAIN_TAINTS) or _says_it_shuts_down(node)


def _says_it_shuts_down(node: Json) -> bool:
    ready = condition_of(node, "Ready")
    return ready.get("status") == "False" and _SHUTTING_DOWN in text(ready.get("message"))


def _has_lost_its_machine(node: Json, claims: Mapping[str, Json] | None) -> bool:
    """Whether a silent node is one of Karpenter's whose NodeClaim is gone: only after its instance is."""
    is_karpenters = _KARPENTER in mapping(metadata_of(node).get("labels"))
    return claims is not None and is_karpenters and name_of(node) not in claims


def _taints(node: Json) -> frozenset[str]:
    return frozenset(text(each.get("key")) for each in objects(mapping(node.get("spec")).get("taints")))
