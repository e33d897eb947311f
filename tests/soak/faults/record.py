"""What a chaos run recorded of one job, and what it had lost by a moment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from holdfast.fallback.state_machine.observation import Cause, Loss
from holdfast.rehearsal.timeline.traces import JobTrace, PodTrace


@dataclass(frozen=True, kw_only=True)
class Record:
    """All that was seen of one job of so many pods, until `until`.

    `vanished`: nodes that went without notice, and when. `noticed`: when somebody can have found that out at last, where
    that was later. `kills`: when the controller or its API server was killed. `lag`: how long the controller may take to
    learn of something.
    """

    trace: JobTrace
    pods: int
    vanished: Mapping[str, datetime]
    until: datetime
    kills: tuple[datetime, ...] = ()
    lag: timedelta = timedelta(seconds=3)
    noticed: Mapping[str, datetime] = field(default_factory=dict[str, datetime])


def losses_by(record: Record, at: datetime) -> Iterator[Loss]:
    """What had been lost by a time: pods that were evicted, and pods whose node had vanished under them."""
    for pod in record.trace.pods.values():
        lost = [each for each in (pod.lost_at, _lost_with_node(pod, record)) if each is not None]
        if lost and min(lost) <= at:
            yield Loss(pod=pod.uid, at=min(lost), cause=Cause.EVICTION, pool=pod.pool, born=pod.born_at)


def _lost_with_node(pod: PodTrace, record: Record) -> datetime | None:
    vanished_at = record.vanished.get(pod.node)
    if vanished_at is None or not pod.is_alive(vanished_at):
        return None
    at = record.noticed.get(pod.node, vanished_at)
    return None if pod.leaving_at is not None and pod.leaving_at <= at else at
