"""A job and its surrounding objects at one moment, and what its pods and nodes show.

Where a pod is, whether and why it has ended, and the state of its node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from pulumi_holdfast.controller.kube.objects import (
    EARLIEST,
    LATEST,
    condition_of,
    count,
    labels_of,
    metadata_of,
    moment,
    name_of,
    objects,
    text,
)
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import POOL


class JobKey(NamedTuple):
    """A job's identity: its kind (`JobSet`), namespace and name."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A job with all objects that its observation is made from.

    `pods`: those that `job_of_pod` attributes to it, including terminating and ended ones. `children`: the Jobs and
    RayClusters that `job_of_child` attributes to it. `nodes`: by name; at least those of the pods. `claims`: the
    NodeClaims by their node's name (`status.nodeName`), None if the cluster has none. `workloads`: Kueue's Workloads of
    its namespace. `now`: UTC.
    """

    job: Json
    now: datetime
    pods: tuple[Json, ...] = ()
    children: tuple[Json, ...] = ()
    nodes: Mapping[str, Json] = field(default_factory=dict[str, "Json"])
    claims: Mapping[str, Json] | None = None
    workloads: tuple[Json, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Recreation:
    """Two writes in this order, both idempotent; nothing is deleted, so a crash between them loses no job.

    `manifest`: the successor to create; it may exist already. `patch`: the merge patch that records the successor in the
    ended job, so that it is not recreated again.
    """

    manifest: Json
    patch: Json


# A kubelet that evicts because of memory or disk pressure writes "Evicted"; the pod requested too little.
_PRESSURE: Final = "Evicted"
# Written by a kubelet that rejects or ends pods because its machine is shutting down.
_NODE_ENDS: Final = frozenset({"NodeShutdown", "Terminated"})
# Written when the time is over that the job's author allows (`activeDeadlineSeconds`).
_DEADLINE: Final = "DeadlineExceeded"
# The pod garbage collector's reason for a pod whose node is gone.
_COLLECTED: Final = "DeletionByPodGC"
_ENDED: Final = frozenset({"Succeeded", "Failed"})
# The difference between the clocks of a kubelet and the API server, which both write whole seconds.
_SLACK: Final = timedelta(seconds=2)
# A longer grace period ends after every time that is read.
_LONGEST_GRACE_SECONDS: Final = int((LATEST - EARLIEST).total_seconds())


@dataclass(frozen=True, kw_only=True)
class PodEnd:
    """How a pod ended or is about to end; any part may be absent.

    `disrupted_at`: since when it is being evicted. `failed_at`: when it failed by itself. `deleted_at`: when its deletion
    was requested. `succeeded`: it succeeded; `exits_zero_when_ended`: after its eviction or deletion.
    """

    disrupted_at: datetime | None = None
    failed_at: datetime | None = None
    deleted_at: datetime | None = None
    succeeded: bool = False
    exits_zero_when_ended: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return self.succeeded or self.failed_at is not None


_NOT_ENDED: Final = PodEnd()


def node_of(pod: Json) -> str:
    """Return the name of the node a pod is bound to, empty without one."""
    return text(mapping(pod.get("spec")).get("nodeName"))


def pool_selected_by(pod: Json) -> str | None:
    """Return the pool that a pod selects, None where it selects none."""
    return text(mapping(mapping(pod.get("spec")).get("nodeSelector")).get(POOL)) or None


def phase_of(pod: Json) -> str:
    """Return a pod's phase."""
    return text(mapping(pod.get("status")).get("phase"))


def has_ended(pod: Json) -> bool:
    """Whether no container of a pod runs or will run."""
    return phase_of(pod) in _ENDED


def is_terminating(pod: Json) -> bool:
    """Whether a pod's deletion was requested."""
    return bool(metadata_of(pod).get("deletionTimestamp"))


def is_ready(pod: Json) -> bool:
    """Whether a pod is ready."""
    return condition_of(pod, "Ready").get("status") == "True"


def has_started(pod: Json) -> bool:
    """Whether a pod's own containers run, not only its init containers."""
    return phase_of(pod) == "Running"


def bound_at(pod: Json) -> datetime | None:
    """Return when a pod got its node."""
    scheduled = condition_of(pod, "PodScheduled")
    return moment(scheduled.get("lastTransitionTime")) if scheduled.get("status") == "True" else None


def pod_end_of(pod: Json, now: datetime, before: PodEnd) -> PodEnd:
    """Return how a pod ended, given what was known (`before`). `now` replaces a time that the pod does not have."""
    if before == _NOT_ENDED and not may_end(pod):
        return before
    # The kubelet deletes an ended pod a second time, at once, and the pod then has that later time.
    deleted_at = min((at for at in (before.deleted_at, deletion_requested_at(pod, now)) if at), default=None)
    ended_at = _ended_at(pod) or now
    failed = phase_of(pod) == "Failed" and not _was_ended_by_deletion(pod, ended_at, deleted_at, now)
    disrupted_at = _disrupted_at(pod, ended_at, deleted_at, now, before.disrupted_at)
    succeeded = phase_of(pod) == "Succeeded"
    was_deleted = deleted_at is not None and ended_at >= deleted_at - timedelta(seconds=1)
    exits_zero = succeeded and (disrupted_at is not None or was_deleted)
    return PodEnd(
        disrupted_at=disrupted_at,
        # It failed before its Job was deleted; later versions of the pod tell the two apart less well.
        failed_at=before.failed_at or (ended_at if failed else None),
        deleted_at=deleted_at,
        succeeded=succeeded,
        # A completed pod is deleted with its job, some time later.
        exits_zero_when_ended=before.exits_zero_when_ended if before.succeeded else exits_zero,
    )


def may_end(pod: Json) -> bool:
    """Whether a version of a pod shows that it ends or has ended; most versions do not."""
    status = mapping(pod.get("status"))
    return (
        text(status.get("phase")) in _ENDED
        or bool(status.get("reason"))
        or is_terminating(pod)
        or bool(condition_of(pod, "DisruptionTarget"))
    )


def deletion_requested_at(pod: Json, now: datetime) -> datetime | None:
    """Return when a pod's deletion was requested: its deletionTimestamp is the end of its grace period.

    `now` if that is no possible time: the grace period is the user's, and the API server adds it without a check.
    """
    if not is_terminating(pod):
        return None
    over = moment(metadata_of(pod).get("deletionTimestamp"))
    grace = _grace_seconds(pod)
    if over is None or not 0 <= grace <= _LONGEST_GRACE_SECONDS:
        return now
    requested = over - timedelta(seconds=grace)
    return requested if requested >= EARLIEST else now


def _disrupted_at(
    pod: Json, ended_at: datetime, deleted_at: datetime | None, now: datetime, before: datetime | None
) -> datetime | None:
    target = condition_of(pod, "DisruptionTarget")
    if _is_pressure(pod):
        return None
    if target.get("status") == "True":
        since = moment(target.get("lastTransitionTime")) or now
        # It was deleted before its node was found to be gone: the node's state tells whether that was the cause.
        is_afterthought = deleted_at is not None and since > deleted_at + _SLACK
        return None if is_afterthought and target.get("reason") == _COLLECTED else since
    if not _is_of_node(pod):
        return None
    # A rejected pod has no container that ended, and must not look as if it were lost later each time.
    return _ended_at(pod) or moment(mapping(pod.get("status")).get("startTime")) or before or ended_at


def _is_of_node(pod: Json) -> bool:
    """Whether a kubelet ended a pod, or rejected it before a container started (`OutOfcpu`, `NodeAffinity`, ...).

    Its reasons are not listed here, because plugins add more; the failure of a program has none. A pod that waited on a node
    under pressure has requested nothing too little.
    """
    status = mapping(pod.get("status"))
    reason = text(status.get("reason"))
    if reason in _NODE_ENDS:
        return True
    if phase_of(pod) != "Failed" or reason in {"", _DEADLINE}:
        return False
    return not _is_pressure(pod)


def _has_begun(status: Json) -> bool:
    """Whether a container of a pod that failed has run."""
    ended = (*objects(status.get("containerStatuses")), *objects(status.get("initContainerStatuses")))
    return any("terminated" in mapping(each.get("state")) for each in ended)


def _is_pressure(pod: Json) -> bool:
    status = mapping(pod.get("status"))
    return text(status.get("reason")) == _PRESSURE and _has_begun(status)


def _grace_seconds(pod: Json) -> int:
    return count(metadata_of(pod).get("deletionGracePeriodSeconds"))


def _was_ended_by_deletion(pod: Json, ended_at: datetime, deleted_at: datetime | None, now: datetime) -> bool:
    """Whether a failed pod was ended by its deletion: by a restart of the Job, or by a suspension.

    A pod that was not observed between its end and its removal may have failed or been terminated. The operator's own
    counter reports a failure, once; a terminated pod is not one.
    """
    if deleted_at is None or text(mapping(pod.get("status")).get("reason")) == _PRESSURE:
        return False
    is_dropped_unseen = _grace_seconds(pod) == 0 and deletion_requested_at(pod, now) == deleted_at
    return is_dropped_unseen or ended_at >= deleted_at - timedelta(seconds=1)


def _ended_at(pod: Json) -> datetime | None:
    statuses = objects(mapping(pod.get("status")).get("containerStatuses"))
    ends = [
        moment(mapping(mapping(each.get("state")).get("terminated")).get("finishedAt")) for each in statuses
    ]
    return max((end for end in ends if end is not None), default=None)


class NodeState(StrEnum):
    """The state of a node."""

    LIVE = "Live"
    DRAINING = "Draining"  #: it still runs its pods, but is about to go
    UNREACHABLE = "Unreachable"  #: its kubelet has stopped answering
    GONE = "Gone"  #: its machine is known to be gone permanently
    UNKNOWN = "Unknown"  #: no such node: gone, or not observed yet


# Taints of controllers that drain a node: Karpenter, the cluster autoscaler of GKE and AKS, and the taint with which a
# user declares a machine lost.
_DRAIN_TAINTS: Final = frozenset(
    {"karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler", "node.kubernetes.io/out-of-service"}
)
_NO_TAINTS: Final = frozenset[str]()
_UNREACHABLE_TAINT: Final = "node.kubernetes.io/unreachable"
# The kubelet's message when its machine shuts down (GKE's graceful shutdown).
_SHUTTING_DOWN: Final = "node is shutting down"
_KARPENTER: Final = "karpenter.sh/nodepool"


def state_of_node(name: str, nodes: Mapping[str, Json], claims: Mapping[str, Json] | None) -> NodeState:
    """Return the state of a node. `claims`: NodeClaims by node name, None if the cluster has none.

    A missing node is UNKNOWN: pods and nodes are watched separately, and a pod may be observed before its node.
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
    # "Unknown" is written by the node controller when a kubelet does not answer; "False" by the kubelet itself.
    return ready.get("status") == "Unknown" or _UNREACHABLE_TAINT in _taints(node)


def _is_draining(node: Json, claims: Mapping[str, Json] | None) -> bool:
    claim = (claims or {}).get(name_of(node), mapping(None))
    going = metadata_of(node).get("deletionTimestamp") or metadata_of(claim).get("deletionTimestamp")
    return bool(going) or bool(_taints(node) & _DRAIN_TAINTS) or _is_shutting_down(node)


def _is_shutting_down(node: Json) -> bool:
    ready = condition_of(node, "Ready")
    return ready.get("status") == "False" and _SHUTTING_DOWN in text(ready.get("message"))


def _has_lost_its_machine(node: Json, claims: Mapping[str, Json] | None) -> bool:
    """Whether an unreachable node is Karpenter's and has no NodeClaim any more: Karpenter removes it after the instance."""
    is_karpenters = _KARPENTER in labels_of(node)
    return claims is not None and is_karpenters and name_of(node) not in claims


def _taints(node: Json) -> frozenset[str]:
    taints = mapping(node.get("spec")).get("taints")
    return frozenset(text(each.get("key")) for each in objects(taints)) if taints else _NO_TAINTS
