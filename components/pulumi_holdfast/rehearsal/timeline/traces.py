"""The timelines of a job and its pods, from the states that a watch shows; its moves, and gangs that overlap. Pure."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, cast

from pulumi_holdfast.controller.kube.objects import condition_of
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.ladder.labels import POOL, RESTART_ATTEMPT, STATE

_JOB_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
_RAY_CLUSTER: Final = "ray.io/cluster"
_RAY_NODE_TYPE: Final = "ray.io/node-type"
_CHILD: Final = "batch.kubernetes.io/job-name"
_CHILD_UID: Final = "batch.kubernetes.io/controller-uid"
_ENDED: Final = frozenset({"Failed", "Succeeded"})
_OUTCOMES: Final = {"Complete": "Completed", "Failed": "Failed"}


@dataclass(frozen=True, kw_only=True)
class PodTrace:
    """One pod, with the time at which each of its states was first observed.

    `child` is the name of its Job, `owner` that Job's uid, `attempt` the JobSet's restart attempt. The child of a RayJob's
    pod is always its RayJob, and the owner its RayCluster; `is_head` says whether it is a Ray head. It is alive until
    `ended_at`: when it had failed, succeeded or was deleted. `leaving_at`: when its deletion was requested. `lost` is the
    reason of its DisruptionTarget condition, first observed at `lost_at`.
    """

    uid: str
    name: str
    pool: str
    attempt: int
    child: str
    owner: str
    born_at: datetime
    is_head: bool = False
    node: str = ""
    bound_at: datetime | None = None
    running_at: datetime | None = None
    leaving_at: datetime | None = None
    ended_at: datetime | None = None
    lost: str = ""
    lost_at: datetime | None = None

    def is_alive(self, at: datetime) -> bool:
        """Whether it existed at a time and had not ended."""
        return self.born_at <= at and (self.ended_at is None or self.ended_at > at)


@dataclass(frozen=True, kw_only=True)
class JobChange:
    """The state of a job from `at` on, by its spec and the controller's annotation.

    `pool` is its tier's pool by the annotation, `waiting_since` the start of its wait by the same; `outcome` is Completed,
    Failed or empty.
    """

    at: datetime
    suspended: bool
    phase: str
    pool: str
    moves: int
    evictions: int
    restarts: int
    outcome: str
    waiting_since: datetime | None = None


@dataclass(kw_only=True)
class JobTrace:
    """A job from its first state to its last, and all of its pods.

    `ledgers`: each state of the controller with another ledger than the one before, with the phase that it was written in.
    """

    name: str
    uid: str = ""
    changes: list[JobChange] = field(default_factory=list[JobChange])
    ledgers: list[Json] = field(default_factory=list[Json])
    pods: dict[str, PodTrace] = field(default_factory=dict[str, PodTrace])
    is_there: bool = True

    @property
    def last(self) -> JobChange:
        """The latest state of the job."""
        return self.changes[-1]

    def alive(self) -> list[PodTrace]:
        """The pods that have not ended."""
        return [pod for pod in self.pods.values() if pod.ended_at is None]

    def running_in(self, pool: str) -> list[PodTrace]:
        """The workers that run in a pool and are not being deleted."""
        return [
            pod
            for pod in self.alive()
            if pod.pool == pool and not pod.is_head and pod.running_at and pod.leaving_at is None
        ]

    def record_job(self, job: Json, at: datetime) -> None:
        """Record a state of the job."""
        metadata = mapping(job.get("metadata"))
        self.uid = str(metadata.get("uid"))
        state = controller_state(job)
        if state.get("ledger") and (not self.ledgers or self.ledgers[-1]["ledger"] != state["ledger"]):
            self.ledgers.append(state)
        change = _change(job, at)
        if not self.changes or replace(change, at=self.last.at) != self.last:
            self.changes.append(change)

    def record_pod(self, pod: Json, at: datetime, *, is_deleted: bool = False) -> PodTrace:
        """Record a state of one of its pods; return the pod's trace."""
        uid = str(mapping(pod.get("metadata")).get("uid"))
        known = _with_state(self.pods.get(uid) or _first_seen(pod, at), pod, at)
        if is_deleted and known.ended_at is None:
            known = replace(known, ended_at=at)
        self.pods[uid] = known
        return known

    def end_missing(self, uids: Collection[str], at: datetime) -> None:
        """Mark every other pod as ended."""
        for uid, pod in self.pods.items():
            if uid not in uids and pod.ended_at is None:
                self.pods[uid] = replace(pod, ended_at=at)


def _change(job: Json, at: datetime) -> JobChange:
    state, status = controller_state(job), mapping(job.get("status"))
    return JobChange(
        at=at,
        suspended=mapping(job.get("spec")).get("suspend") is True,
        phase=str(state.get("phase") or ""),
        pool=str(state.get("pool") or ""),
        moves=_number(state.get("moves")),
        evictions=_number(state.get("evictions")),
        restarts=_number(status.get("restarts")) + _number(status.get("failed")),
        outcome=str(status.get("terminalState") or _OUTCOMES.get(str(status.get("jobDeploymentStatus")), "")),
        waiting_since=_time(state.get("waiting_since")),
    )


def controller_state(job: Json) -> Json:
    """Return the controller's state from a job's annotation, empty if there is none."""
    text = mapping(mapping(job.get("metadata")).get("annotations")).get(STATE)
    if not isinstance(text, str):
        return {}
    try:
        return mapping(cast("JsonValue", json.loads(text)))
    except ValueError:
        return {}


def job_of_pod(pod: Json) -> str | None:
    """Return the name of the JobSet or RayJob of a pod; None for other pods."""
    labels = mapping(mapping(pod.get("metadata")).get("labels"))
    # KubeRay names a RayJob's cluster after it, with five characters and a hyphen before them.
    cluster = labels.get(_RAY_CLUSTER)
    name = cluster.rpartition("-")[0] if isinstance(cluster, str) else labels.get(_JOB_NAME)
    return name if isinstance(name, str) else None


def _first_seen(pod: Json, at: datetime) -> PodTrace:
    metadata = mapping(pod.get("metadata"))
    labels = mapping(metadata.get("labels"))
    attempt = str(labels.get(RESTART_ATTEMPT) or "0")
    return PodTrace(
        uid=str(metadata.get("uid")),
        name=str(metadata.get("name")),
        pool=str(mapping(mapping(pod.get("spec")).get("nodeSelector")).get(POOL) or ""),
        attempt=int(attempt) if attempt.isdecimal() else 0,
        child=str(labels.get(_CHILD) or job_of_pod(pod) or ""),
        owner=str(labels.get(_CHILD_UID) or labels.get(_RAY_CLUSTER) or ""),
        born_at=at,
        is_head=labels.get(_RAY_NODE_TYPE) == "head",
    )


def _with_state(known: PodTrace, pod: Json, at: datetime) -> PodTrace:
    status, node = mapping(pod.get("status")), mapping(pod.get("spec")).get("nodeName")
    phase = status.get("phase")
    target = condition_of(pod, "DisruptionTarget")
    lost = str(target.get("reason") or target["type"]) if target.get("status") == "True" else ""
    is_leaving = mapping(pod.get("metadata")).get("deletionTimestamp") is not None
    return replace(
        known,
        node=str(node or ""),
        bound_at=known.bound_at or (at if node else None),
        running_at=known.running_at or (at if phase == "Running" else None),
        leaving_at=known.leaving_at or (at if is_leaving else None),
        ended_at=known.ended_at or (at if phase in _ENDED else None),
        lost=known.lost or lost,
        lost_at=known.lost_at or (at if lost else None),
    )


def _time(value: JsonValue) -> datetime | None:
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    # Only the controller writes a time with its zone; others cannot be compared with the watch's.
    return time if time is not None and time.tzinfo is not None else None


def _number(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def overlap(trace: JobTrace, pod: PodTrace) -> str | None:
    """Return a line that names the other gang that is alive at the same time as a pod, None if there is none."""
    if pod.ended_at is not None:
        return None
    others = [other for other in trace.alive() if _is_of_another_gang(other, pod)]
    if not others:
        return None
    beside = ", ".join(sorted(f"{_called(other)}" for other in others))
    return f"{trace.name}: {_called(pod)} together with {beside}"


def _is_of_another_gang(one: PodTrace, other: PodTrace) -> bool:
    """Whether two pods are of different gangs: another tier, another restart attempt, or another Job of the same name."""
    if one.is_head == other.is_head and (one.pool, one.attempt) != (other.pool, other.attempt):
        return True
    return one.child == other.child and one.owner != other.owner


def _called(pod: PodTrace) -> str:
    return f"{pod.name} ({pod.pool}, attempt {pod.attempt})"


@dataclass(frozen=True, kw_only=True)
class Move:
    """A move from one tier to another.

    The job is suspended at `suspended_at`; the last pod of its gang has ended at `gone_at`; it is resumed at `resumed_at`;
    all pods of the next gang have nodes at `bound_at` and run at `running_at`. A step that did not happen is None.
    """

    source: str
    target: str
    suspended_at: datetime
    gone_at: datetime | None = None
    resumed_at: datetime | None = None
    bound_at: datetime | None = None
    running_at: datetime | None = None


def moves_of(trace: JobTrace, pods: int) -> tuple[Move, ...]:
    """Return the moves of a job of `pods` pods, first to last."""
    found: list[Move] = []
    source = ""
    for change in trace.changes:
        is_begun = change.suspended and change.phase == "Suspending"
        if is_begun and (not found or found[-1].resumed_at is not None):
            found.append(Move(source=source, target=change.pool, suspended_at=change.at))
        elif found and not change.suspended and found[-1].resumed_at is None:
            found[-1] = replace(found[-1], resumed_at=change.at, target=change.pool)
        if not change.suspended:
            source = change.pool
    ends = [each.suspended_at for each in found[1:]]
    return tuple(
        _with_pods(move, trace.pods.values(), pods, until)
        for move, until in zip(found, [*ends, None], strict=True)
    )


def _with_pods(move: Move, traces: Iterable[PodTrace], pods: int, until: datetime | None) -> Move:
    before = [pod for pod in traces if pod.born_at <= move.suspended_at]
    # A suspended job creates no pods: pods created since are of the resumed gang.
    after = [
        pod for pod in traces if pod.born_at > move.suspended_at and (until is None or pod.born_at <= until)
    ]
    first = [pod for pod in after if pod.attempt == min(each.attempt for each in after)]
    return replace(
        move,
        gone_at=_last([pod.ended_at for pod in before], len(before)),
        bound_at=_last([pod.bound_at for pod in first], pods),
        running_at=_last([pod.running_at for pod in first], pods),
    )


def _last(times: Iterable[datetime | None], count: int) -> datetime | None:
    """The last of `count` times, None if there are fewer."""
    known = sorted(time for time in times if time is not None)
    return known[count - 1] if 0 < count <= len(known) else None
