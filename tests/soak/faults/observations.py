"""What a fault run recorded of one job, as the state machine observes it at any time. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta

from pulumi_holdfast.controller.jobs.observation import Cause, Loss, Observation
from pulumi_holdfast.rehearsal.timeline.traces import JobChange, JobTrace, PodTrace


@dataclass(frozen=True, kw_only=True)
class Record:
    """The record of one job of `pods` pods, until `until`.

    `vanished`: nodes lost without notice, with the times. `noticed`: the latest time at which the controller can have
    noticed, if later. `kills`: when the controller or the API server was killed. `lag`: the delay of the controller's
    watches. `is_paced`: the job has a deadline, which its record does not show. `unseen`: the uids of pods whose eviction the
    controller may not know of.
    """

    trace: JobTrace
    pods: int
    vanished: Mapping[str, datetime]
    until: datetime
    kills: tuple[datetime, ...] = ()
    lag: timedelta = timedelta(seconds=3)
    noticed: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    is_paced: bool = False
    unseen: frozenset[str] = frozenset()


def losses_by(record: Record, at: datetime) -> Iterator[Loss]:
    """The losses by a time: pods that were evicted, and pods whose node was lost."""
    for pod in record.trace.pods.values():
        if pod.is_head or pod.uid in record.unseen:
            continue
        lost = [each for each in (pod.lost_at, _lost_with_node(pod, record)) if each is not None]
        if lost and min(lost) <= at:
            yield Loss(
                pod=pod.uid, at=min(lost), cause=Cause.EVICTION, pool=pod.pool, pod_created_at=pod.born_at
            )


def _lost_with_node(pod: PodTrace, record: Record) -> datetime | None:
    vanished_at = record.vanished.get(pod.node)
    if vanished_at is None or not pod.is_alive(vanished_at):
        return None
    at = record.noticed.get(pod.node, vanished_at)
    return None if pod.leaving_at is not None and pod.leaving_at <= at else at


def alive(record: Record, at: datetime) -> list[PodTrace]:
    """Return the pods of the job that were alive at a time."""
    return [pod for pod in record.trace.pods.values() if pod.is_alive(at)]


def observed(record: Record, change: JobChange, at: datetime, *, first: str) -> Observation:
    """Return the observation at a time; `first` is the pool of a job that selects none yet."""
    vanished, there = record.vanished, alive(record, at)
    placed = [
        pod
        for pod in there
        if not pod.is_head
        and pod.bound_at is not None
        and pod.bound_at <= at
        and (pod.leaving_at is None or pod.leaving_at > at)
        and not (pod.node in vanished and vanished[pod.node] <= at)
    ]
    return Observation(
        uid=record.trace.uid,
        created=record.trace.changes[0].at,
        now=at,
        suspended=change.suspended,
        pool=change.pool or first,
        restarts=change.restarts,
        losses=tuple(losses_by(record, at)),
        pods_expected=record.pods,
        pods_placed=len(placed),
        pods_started=len(placed),
        pods_remaining=len(there),
    )


def evidence(record: Record) -> str:
    """Return the timeline of the job as text: a line for each change of the job, its pods and nodes, and for each kill."""
    return "".join(f"{at:%H:%M:%S.%f} {what}\n" for at, what in sorted(_moments(record)))


def _moments(record: Record) -> Iterator[tuple[datetime, str]]:
    for change in record.trace.changes:
        said = {name: value for name, value in asdict(change).items() if name != "at"}
        yield change.at, " ".join(f"{name}={value}" for name, value in said.items())
    nodes = {pod.node for pod in record.trace.pods.values()}
    for pod in record.trace.pods.values():
        yield from ((at, f"{pod.name} {what}") for at, what in _life(pod) if at is not None)
    yield from ((at, f"{node} vanishes") for node, at in record.vanished.items() if node in nodes)
    yield from ((at, "the controller or its API server is killed") for at in record.kills)


def _life(pod: PodTrace) -> Iterator[tuple[datetime | None, str]]:
    yield pod.born_at, f"is created for {pod.pool}"
    yield pod.bound_at, f"is bound to {pod.node}"
    yield pod.running_at, "runs"
    yield pod.lost_at, f"is lost: {pod.lost}"
    yield pod.leaving_at, "is being deleted"
    yield pod.ended_at, "has ended"
