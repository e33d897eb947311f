"""What one pod says of itself: where it is, whether it has ended, and what it ended of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from holdfast.fallback.api.objects import (
    condition_of,
    count,
    mapping,
    metadata_of,
    moment,
    name_of,
    objects,
    text,
)
from holdfast.scheduling.labels import POOL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.scheduling.json import Json


# A kubelet that evicts for want of memory or disk says "Evicted"; the program asked for too little, whatever the node.
_PRESSURE: Final = "Evicted"
# Set by a kubelet that refuses or ends pods because its machine is about to end.
_NODE_ENDS: Final = frozenset({"NodeShutdown", "Terminated"})
# The pod garbage collector's word for a pod whose node is no more.
_COLLECTED: Final = "DeletionByPodGC"
_ENDED: Final = frozenset({"Succeeded", "Failed"})
# The clocks of a kubelet and of the API server, and the whole seconds in which both write.
_SLACK: Final = timedelta(seconds=2)


@dataclass(frozen=True, kw_only=True)
class PodEnd:
    """How a pod ended or is about to: any part may be absent.

    `disrupted_at`: since when it is to be taken from its node. `failed_at`: when it failed by itself.
    `deleted_at`: when its deletion was asked for. `succeeded`: it ended well.
    """

    disrupted_at: datetime | None = None
    failed_at: datetime | None = None
    deleted_at: datetime | None = None
    succeeded: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return self.succeeded or self.failed_at is not None


def node_of(pod: Json) -> str:
    """Return the name of the node a pod is bound to, empty where it waits for one."""
    return text(mapping(pod.get("spec")).get("nodeName"))


def pool_selected_by(pod: Json) -> str | None:
    """Return the pool that a pod selects, None where it selects none."""
    return text(mapping(mapping(pod.get("spec")).get("nodeSelector")).get(POOL)) or None


def phase_of(pod: Json) -> str:
    """Return a pod's phase."""
    return text(mapping(pod.get("status")).get("phase"))


def has_ended(pod: Json) -> bool:
    """Whether no container of a pod runs any more or ever will."""
    return phase_of(pod) in _ENDED


def is_terminating(pod: Json) -> bool:
    """Whether a pod's deletion was asked for."""
    return bool(metadata_of(pod).get("deletionTimestamp"))


def is_ready(pod: Json) -> bool:
    """Whether a pod says that it is ready."""
    return condition_of(pod, "Ready").get("status") == "True"


def has_started(pod: Json) -> bool:
    """Whether a pod's own containers run, and not only those that prepare it."""
    return phase_of(pod) == "Running"


def bound_at(pod: Json) -> datetime | None:
    """Return when a pod got its node."""
    scheduled = condition_of(pod, "PodScheduled")
    return moment(scheduled.get("lastTransitionTime")) if scheduled.get("status") == "True" else None


def pod_end_of(pod: Json, now: datetime, before: PodEnd) -> PodEnd:
    """Return how a pod ended, of which `before` was known. `now` stands in for a time that it does not tell."""
    # Its kubelet deletes what has ended once more, at once, and the pod then bears the time of that, seconds later.
    deleted_at = min((at for at in (before.deleted_at, deletion_requested_at(pod)) if at), default=None)
    ended_at = _ended_at(pod) or now
    failed = phase_of(pod) == "Failed" and not _was_ended_by_deletion(pod, ended_at, deleted_at)
    return PodEnd(
        disrupted_at=_disrupted_at(pod, ended_at, deleted_at, now),
        # It failed before its Job was deleted; what is written of it later tells the two apart less well.
        failed_at=before.failed_at or (ended_at if failed else None),
        deleted_at=deleted_at,
        succeeded=phase_of(pod) == "Succeeded",
    )


def deletion_requested_at(pod: Json) -> datetime | None:
    """Return when a pod's deletion was asked for: what it bears is when its grace is over."""
    over = moment(metadata_of(pod).get("deletionTimestamp"))
    grace = count(metadata_of(pod).get("deletionGracePeriodSeconds"))
    return None if over is None else over - timedelta(seconds=grace)


def _disrupted_at(
    pod: Json, ended_at: datetime, deleted_at: datetime | None, now: datetime
) -> datetime | None:
    reason = text(mapping(pod.get("status")).get("reason"))
    target = condition_of(pod, "DisruptionTarget")
    if reason == _PRESSURE:
        return None
    if target.get("status") == "True":
        since = moment(target.get("lastTransitionTime")) or now
        # Deleted already when it was found that its node has gone: whether it was lost to that, its node tells.
        is_afterthought = deleted_at is not None and since > deleted_at + _SLACK
        return None if is_afterthought and target.get("reason") == _COLLECTED else since
    return ended_at if reason in _NODE_ENDS else None


def _was_ended_by_deletion(pod: Json, ended_at: datetime, deleted_at: datetime | None) -> bool:
    """Whether a failed pod was ended by its deletion: the Job that restarts, or a suspension.

    One that nobody saw before it was dropped may have failed or been told to end. Its operator's own counter tells of a
    failure, and once; a pod that was told to end is none.
    """
    if deleted_at is None or text(mapping(pod.get("status")).get("reason")) == _PRESSURE:
        return False
    grace = count(metadata_of(pod).get("deletionGracePeriodSeconds"))
    is_dropped_unseen = grace == 0 and deletion_requested_at(pod) == deleted_at
    return is_dropped_unseen or ended_at >= deleted_at - timedelta(seconds=1)


def _ended_at(pod: Json) -> datetime | None:
    statuses = objects(mapping(pod.get("status")).get("containerStatuses"))
    ends = [
        moment(mapping(mapping(each.get("state")).get("terminated")).get("finishedAt")) for each in statuses
    ]
    return max((end for end in ends if end is not None), default=None)


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
    silent = _is_unreachable(node)
    if silent:
        return NodeState.GONE if _has_lost_its_machine(node, claims) else NodeState.UNREACHABLE
    return NodeState.DRAINING if _is_draining(node, claims) else NodeState.LIVE


def _is_unreachable(node: Json) -> bool:
    ready = condition_of(node, "Ready")
    # "Unknown" is the node controller's word for a kubelet that has not answered; "False" is the kubelet's own.
    return ready.get("status") == "Unknown" or _UNREACHABLE_TAINT in _taints(node)


def _is_draining(node: Json, claims: Mapping[str, Json] | None) -> bool:
    claim = (claims or {}).get(name_of(node), mapping(None))
    going = metadata_of(node).get("deletionTimestamp") or metadata_of(claim).get("deletionTimestamp")
    return bool(going) or bool(_taints(node) & _DRAIN_TAINTS) or _is_shutting_down(node)


def _is_shutting_down(node: Json) -> bool:
    ready = condition_of(node, "Ready")
    return ready.get("status") == "False" and _SHUTTING_DOWN in text(ready.get("message"))


def _has_lost_its_machine(node: Json, claims: Mapping[str, Json] | None) -> bool:
    """Whether a silent node is one of Karpenter's whose NodeClaim is gone: only after its instance is."""
    is_karpenters = _KARPENTER in mapping(metadata_of(node).get("labels"))
    return claims is not None and is_karpenters and name_of(node) not in claims


def _taints(node: Json) -> frozenset[str]:
    return frozenset(text(each.get("key")) for each in objects(mapping(node.get("spec")).get("taints")))
