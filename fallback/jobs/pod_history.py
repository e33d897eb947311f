"""What is remembered of a job's pods between two looks: a pod that was lost is gone before anybody looks again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holdfast.fallback.api.objects import mapping, metadata_of, moment, name_of, text, uid_of
from holdfast.fallback.jobs.pods_and_nodes import (
    NodeState,
    PodEnd,
    node_of,
    pod_end_of,
    pool_selected_by,
    state_of_node,
)
from holdfast.fallback.state_machine.observation import Cause, Loss, Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from holdfast.fallback.jobs.snapshot import Snapshot
    from holdfast.scheduling.json import Json


# Longer than any outage window that makes sense: what is older has long been counted, and is kept in the job's state.
RETENTION: Final = timedelta(hours=1)
# A pod that ended on a node which is taken this much later ended for that: a notice is two minutes at most, and a
# program may act on it before anybody else does.
NOTICE_PERIOD: Final = timedelta(seconds=150)

_OF_GANG: Final = frozenset({"jobset.sigs.k8s.io/jobset-name", "ray.io/cluster"})


@dataclass(frozen=True, kw_only=True)
class PodRecord:
    """One pod: where it was, how it ended, and how it stood with its node.

    `created`: when. `is_of_gang`: it is one of those that work together; the pod that merely submits a RayJob is not, and
    its own Job tries again. `is_there`: the API server still has it. `node_was_seen`: its node was there once. `node_lost_at`: since when we
    see its node silent or missing; `node_is_gone`: for good. `node_drained_at`: since when its node is being emptied.
    `is_dismissed`: its job was suspended, and it was on its way out, before its node was lost.
    """

    name: str
    node: str
    pool: str | None
    part: Part
    created: datetime
    is_of_gang: bool = True
    end: PodEnd = field(default_factory=PodEnd)
    is_there: bool = True
    node_was_seen: bool = False
    node_lost_at: datetime | None = None
    node_is_gone: bool = False
    node_drained_at: datetime | None = None
    is_dismissed: bool = False


@dataclass(frozen=True, kw_only=True)
class FailedAttempt:
    """One time that a RayJob failed: which one, when we saw it, and what was said of it."""

    number: int
    at: datetime
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class RayHistory:
    """Of a RayJob: since when its head does not answer, and how it has failed.

    `failed`: its operator's counter as it was seen last, None before the first look.
    """

    head_unready_since: datetime | None = None
    failed: int | None = None
    attempts: tuple[FailedAttempt, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PodHistory:
    """All that is remembered of one job; a new process begins with an empty one.

    `pods` by uid. `ray`: what only a RayJob has.
    """

    pods: Mapping[str, PodRecord] = field(default_factory=dict[str, PodRecord])
    ray: RayHistory = field(default_factory=RayHistory)


def with_pod(memory: PodHistory, pod: Json, now: datetime, *, is_deleted: bool = False) -> PodHistory:
    """Return the memory with one state of a pod taken in; `is_deleted`: the last, the API server has dropped it.

    To be called for every event of a watch: two of them may pass between two looks at the job.
    """
    record = _updated(memory.pods.get(uid_of(pod)), pod, now)
    return replace(memory, pods={**memory.pods, uid_of(pod): replace(record, is_there=not is_deleted)})


def updated_history(memory: PodHistory, snapshot: Snapshot) -> PodHistory:
    """Return the memory with a look at everything taken in: pods, their nodes, and what has become too old to keep."""
    pods = dict(memory.pods)
    for pod in snapshot.pods:
        pods[uid_of(pod)] = _updated(pods.get(uid_of(pod)), pod, snapshot.now)
    there = {uid_of(pod) for pod in snapshot.pods}
    looked_at = {
        uid: _with_node_state(_with_dismissal(replace(record, is_there=uid in there), snapshot), snapshot)
        for uid, record in pods.items()
    }
    # A job of the same name may have been here before this one, and its pods are none of this one's losses.
    begun = moment(metadata_of(snapshot.job).get("creationTimestamp"))
    kept = {
        uid: record
        for uid, record in looked_at.items()
        if _is_retained(record, snapshot.now) and (begun is None or record.created >= begun)
    }
    return replace(memory, pods=kept)


def pod_records(memory: PodHistory) -> Iterable[tuple[str, PodRecord]]:
    """Return what is remembered of each pod, by uid."""
    return memory.pods.items()


def part_of(pod: Json) -> Part:
    """Return which part of its job a pod is: a Ray head, or a worker."""
    labels = mapping(metadata_of(pod).get("labels"))
    return Part.HEAD if text(labels.get("ray.io/node-type")) == "head" else Part.WORKER


def _is_of_gang(pod: Json) -> bool:
    return bool(mapping(metadata_of(pod).get("labels")).keys() & _OF_GANG)


def _updated(before: PodRecord | None, pod: Json, now: datetime) -> PodRecord:
    known = before or PodRecord(
        name=name_of(pod),
        node="",
        pool=None,
        part=part_of(pod),
        created=moment(metadata_of(pod).get("creationTimestamp")) or now,
        is_of_gang=_is_of_gang(pod),
    )
    return replace(
        known,
        node=node_of(pod) or known.node,
        pool=pool_selected_by(pod) or known.pool,
        end=pod_end_of(pod, now, known.end),
    )


def _with_dismissal(record: PodRecord, snapshot: Snapshot) -> PodRecord:
    suspended = mapping(snapshot.job.get("spec")).get("suspend") is True
    on_its_way = record.end.deleted_at is not None and record.node_lost_at is None
    return replace(record, is_dismissed=True) if suspended and on_its_way else record


def _with_node_state(record: PodRecord, snapshot: Snapshot) -> PodRecord:
    if not record.node or (record.end.has_ended and not _may_still_be_explained(record, snapshot.now)):
        return record
    state = state_of_node(record.node, snapshot.nodes, snapshot.claims)
    if state is NodeState.LIVE:
        return replace(record, node_was_seen=True, node_lost_at=None, node_drained_at=None)
    if state is NodeState.DRAINING:
        return replace(
            record,
            node_was_seen=True,
            node_lost_at=None,
            node_drained_at=record.node_drained_at or snapshot.now,
        )
    if not record.is_there and not record.end.has_ended and record.node_lost_at is None:
        return record  # it left in good order, and its node after it
    return replace(
        record,
        node_lost_at=record.node_lost_at or snapshot.now,
        node_is_gone=state is NodeState.GONE or (state is NodeState.UNKNOWN and record.node_was_seen),
    )


def _may_still_be_explained(record: PodRecord, now: datetime) -> bool:
    failed_at = record.end.failed_at
    return failed_at is not None and now - failed_at <= NOTICE_PERIOD


def _is_retained(record: PodRecord, now: datetime) -> bool:
    if record.is_there:
        return True
    last = max(
        (at for at in (record.end.disrupted_at, record.end.failed_at, record.node_lost_at) if at is not None),
        default=None,
    )
    return last is not None and now - last <= RETENTION


def losses_of(memory: PodHistory) -> tuple[Loss, ...]:
    """Return every loss that is remembered, first to last."""
    found = [loss for uid, record in pod_records(memory) if (loss := _loss(uid, record)) is not None]
    return tuple(sorted(found, key=lambda loss: (loss.at, loss.pod)))


def dead_pods_of(memory: PodHistory) -> tuple[str, ...]:
    """Return the names of the pods that exist and whose machine is gone for good: no kubelet will ever end them."""
    return tuple(
        sorted(
            record.name
            for _, record in pod_records(memory)
            if record.is_there and record.node_is_gone and not record.end.has_ended
        )
    )


def _loss(uid: str, record: PodRecord) -> Loss | None:
    found = _cause(record) if record.is_of_gang else None
    if found is None:
        return None
    cause, at = found
    return Loss(pod=uid, at=at, cause=cause, part=record.part, pool=record.pool)


def _cause(record: PodRecord) -> tuple[Cause, datetime] | None:
    ending = record.end
    lost_at = None if record.is_dismissed else record.node_lost_at
    if ending.disrupted_at is not None:
        # A node that vanished is what its pods were lost to, though they are only collected a minute later.
        at = min(ending.disrupted_at, lost_at or ending.disrupted_at)
        return (Cause.NODE_GONE if record.node_is_gone and at == lost_at else Cause.EVICTION), at
    if ending.failed_at is not None:
        return _cause_of_failure(record, ending.failed_at), ending.failed_at
    if lost_at is not None and not ending.succeeded:
        return (Cause.NODE_GONE if record.node_is_gone else Cause.UNREACHABLE), lost_at
    return None


def _cause_of_failure(record: PodRecord, at: datetime) -> Cause:
    """Why a pod failed that nobody says was evicted: its node may have been on the way out."""
    if record.node_lost_at is not None and record.node_lost_at - at <= NOTICE_PERIOD:
        return Cause.NODE_GONE
    if record.node_drained_at is not None and record.node_drained_at - at <= NOTICE_PERIOD:
        return Cause.EVICTION
    return Cause.APPLICATION


def failure_cause(memory: PodHistory, at: datetime | None) -> Cause | None:
    """Return what was lost around a job's end; None where nothing is known of it.

    An eviction explains the failures around it, as it does in the count of outages.
    """
    around = [loss for loss in losses_of(memory) if at is None or abs(at - loss.at) <= NOTICE_PERIOD]
    evictions = [loss.cause for loss in around if loss.cause is not Cause.APPLICATION]
    if evictions:
        return evictions[-1]
    return Cause.APPLICATION if around else None
