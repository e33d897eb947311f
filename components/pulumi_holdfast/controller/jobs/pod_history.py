"""The history of a job's pods between two reconciliations, and the losses in it.

A lost pod may be deleted before the next reconciliation. Losses are read from pods and nodes, never from an operator's
counters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.controller.jobs.observation import Cause, Loss, Part
from pulumi_holdfast.controller.jobs.pods_and_nodes import (
    NodeState,
    PodEnd,
    node_of,
    pod_end_of,
    pool_selected_by,
    state_of_node,
)
from pulumi_holdfast.controller.kube.objects import (
    count,
    labels_of,
    metadata_of,
    moment,
    name_of,
    text,
    uid_of,
)
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.json import Json, mapping

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from pulumi_holdfast.controller.jobs.pods_and_nodes import Snapshot


# Longer than any useful outage window: older losses are counted, and recorded in the job's state.
RETENTION: Final = timedelta(hours=1)
# A pod that ended on a node that is lost this much later ended for that reason: a reclaim notice is two minutes at
# most, and a program may react to it before any controller does.
NOTICE_PERIOD: Final = timedelta(seconds=150)

# More records than the widest gang has pods; then those of the last pods that are gone are kept.
_MOST_RECORDS: Final = 12_000
_MOST_DEPARTED: Final = 1_000

_GRACE: Final = "terminationGracePeriodSeconds"
_USUAL_GRACE: Final = 30
# A user may write any number.
_MOST_GRACE: Final = 3600
_OF_GANG: Final = frozenset({"jobset.sigs.k8s.io/jobset-name", "ray.io/cluster"})


@dataclass(frozen=True, kw_only=True)
class PodRecord:
    """One pod: its node, how it ended, and the state of its node.

    `grace`: how long it may take to end. `is_of_gang`: it is one of the pods that work together; the pod that submits a RayJob is not, and its own Job retries.
    `is_there`: the API server still has it. `node_was_seen`: its node existed once. `node_lost_at`: since when its node is
    unreachable or missing; `node_is_gone`: permanently. `node_drained_at`: since when its node is being drained.
    `is_dismissed`: its job was suspended, and the pod was terminating, before its node was lost.
    """

    name: str
    node: str
    pool: str | None
    part: Part
    created: datetime
    grace: timedelta = timedelta(0)
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
    """One failed attempt of a RayJob: its number, when it was observed, and the reason."""

    number: int
    at: datetime
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class RayHistory:
    """What only a RayJob has: since when its head is not ready, and its failed attempts.

    `failed`: the operator's counter as last observed, None before the first observation.
    """

    head_unready_since: datetime | None = None
    failed: int | None = None
    attempts: tuple[FailedAttempt, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PodHistory:
    """The history of one job; a new process starts with an empty one. `pods` by uid."""

    pods: Mapping[str, PodRecord] = field(default_factory=dict[str, PodRecord])
    ray: RayHistory = field(default_factory=RayHistory)


def with_pod(history: PodHistory, pod: Json, now: datetime, *, is_deleted: bool = False) -> PodHistory:
    """Return the history with one version of a pod; `is_deleted`: its last one, the API server has removed it.

    Called for every watch event: several may pass between two reconciliations.
    """
    before = history.pods.get(uid_of(pod))
    record = _with_presence(_updated(before, pod, now), is_there=not is_deleted)
    if record is before:
        return history
    pods = {**history.pods, uid_of(pod): record}
    if len(pods) > _MOST_RECORDS:
        # Users may create and delete pods without end; the losses before these are counted in the job's state.
        departed = [uid for uid, each in pods.items() if not each.is_there]
        for uid in departed[:-_MOST_DEPARTED]:
            del pods[uid]
    return replace(history, pods=pods)


def updated_history(history: PodHistory, snapshot: Snapshot) -> PodHistory:
    """Return the history with a whole snapshot: pods, their nodes, and without records that are too old."""
    pods = dict(history.pods)
    for pod in snapshot.pods:
        pods[uid_of(pod)] = _updated(pods.get(uid_of(pod)), pod, snapshot.now)
    there = {uid_of(pod) for pod in snapshot.pods}
    looked_at = {
        uid: _with_node_state(
            _with_dismissal(_with_presence(record, is_there=uid in there), snapshot), snapshot
        )
        for uid, record in pods.items()
    }
    # Another job with the same name may have existed before; its pods are not this job's losses.
    begun = moment(metadata_of(snapshot.job).get("creationTimestamp"))
    retained = {
        uid: record
        for uid, record in looked_at.items()
        if _is_retained(record, snapshot.now) and (begun is None or record.created >= begun)
    }
    return replace(history, pods=retained)


def pod_records(history: PodHistory) -> Iterable[tuple[str, PodRecord]]:
    """Return the record of each pod, by uid."""
    return history.pods.items()


def part_of(pod: Json) -> Part:
    """Return the part of its job that a pod is: a Ray head, or a worker."""
    labels = labels_of(pod)
    return Part.HEAD if text(labels.get("ray.io/node-type")) == "head" else Part.WORKER


def _is_of_gang(pod: Json) -> bool:
    return bool(labels_of(pod).keys() & _OF_GANG)


def _updated(before: PodRecord | None, pod: Json, now: datetime) -> PodRecord:
    known = before or PodRecord(
        name=name_of(pod),
        node="",
        pool=None,
        part=part_of(pod),
        created=moment(metadata_of(pod).get("creationTimestamp")) or now,
        grace=timedelta(seconds=min(count(mapping(pod.get("spec")).get(_GRACE), _USUAL_GRACE), _MOST_GRACE)),
        is_of_gang=_is_of_gang(pod),
    )
    node, pool = node_of(pod) or known.node, pool_selected_by(pod) or known.pool
    end = pod_end_of(pod, now, known.end)
    # Most versions of a pod change nothing here, and a copy of the record costs more than the comparison.
    if (node, pool, end) == (known.node, known.pool, known.end):
        return known
    return replace(known, node=node, pool=pool, end=end)


def _with_presence(record: PodRecord, *, is_there: bool) -> PodRecord:
    return record if record.is_there == is_there else replace(record, is_there=is_there)


def _with_dismissal(record: PodRecord, snapshot: Snapshot) -> PodRecord:
    suspended = mapping(snapshot.job.get("spec")).get("suspend") is True
    on_its_way = record.end.deleted_at is not None and record.node_lost_at is None
    return replace(record, is_dismissed=True) if suspended and on_its_way else record


def _with_node_state(record: PodRecord, snapshot: Snapshot) -> PodRecord:
    if not record.node or (record.end.has_ended and not _may_still_be_explained(record, snapshot.now)):
        return record
    state = state_of_node(record.node, snapshot.nodes, snapshot.claims)
    if state is NodeState.LIVE:
        if record.node_was_seen and record.node_lost_at is None and record.node_drained_at is None:
            return record
        return replace(record, node_was_seen=True, node_lost_at=None, node_drained_at=None)
    if state is NodeState.DRAINING:
        return replace(
            record,
            node_was_seen=True,
            node_lost_at=None,
            node_drained_at=record.node_drained_at or snapshot.now,
        )
    if not record.is_there and not record.end.has_ended and record.node_lost_at is None:
        return record  # it was deleted before its node
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


def losses_of(history: PodHistory) -> tuple[Loss, ...]:
    """Return every known loss, ordered by time."""
    found = [loss for uid, record in pod_records(history) if (loss := _loss(uid, record)) is not None]
    return tuple(sorted(found, key=lambda loss: (loss.at, loss.pod)))


def dead_pods_of(history: PodHistory) -> tuple[str, ...]:
    """Return the names of the pods whose machine is gone: no kubelet will end them."""
    return tuple(
        sorted(
            record.name
            for _, record in pod_records(history)
            if record.is_there and record.node_is_gone and not record.end.has_ended
        )
    )


def _loss(uid: str, record: PodRecord) -> Loss | None:
    found = _cause(record) if record.is_of_gang else None
    if found is None:
        return None
    cause, at = found
    return Loss(
        pod=uid,
        at=at,
        cause=cause,
        part=record.part,
        pool=record.pool,
        pod_created_at=record.created,
        grace=record.grace,
    )


def _cause(record: PodRecord) -> tuple[Cause, datetime] | None:
    ending = record.end
    lost_at = None if record.is_dismissed else record.node_lost_at
    if ending.disrupted_at is not None:
        # The pods of a node that is gone were lost with it, although they are collected a minute later.
        at = min(ending.disrupted_at, lost_at or ending.disrupted_at)
        return (Cause.NODE_GONE if record.node_is_gone and at == lost_at else Cause.EVICTION), at
    if ending.failed_at is not None:
        return _cause_of_failure(record, ending.failed_at), ending.failed_at
    if lost_at is not None and not ending.succeeded:
        return (Cause.NODE_GONE if record.node_is_gone else Cause.UNREACHABLE), lost_at
    return None


def _cause_of_failure(record: PodRecord, at: datetime) -> Cause:
    """The cause of a pod's failure without an eviction: its node may have been about to disappear."""
    if record.node_lost_at is not None and record.node_lost_at - at <= NOTICE_PERIOD:
        return Cause.NODE_GONE
    if record.node_drained_at is not None and record.node_drained_at - at <= NOTICE_PERIOD:
        return Cause.EVICTION
    return Cause.APPLICATION


def failure_cause(history: PodHistory, at: datetime | None) -> Cause | None:
    """Return the cause of a job's failure; None if it is unknown.

    An eviction explains the failures around it, as it does when outages are counted.
    """
    around = [loss for loss in losses_of(history) if at is None or abs(at - loss.at) <= NOTICE_PERIOD]
    evictions = [loss.cause for loss in around if loss.cause is not Cause.APPLICATION]
    if evictions:
        return evictions[-1]
    return Cause.APPLICATION if around else None
