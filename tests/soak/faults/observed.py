"""What was to be seen of a job at one moment, as the ladder wants it. Pure."""

from datetime import datetime

from holdfast.fallback.state_machine.observation import Observation
from holdfast.rehearsal.timeline.traces import JobChange, PodTrace
from tests.soak.faults.record import Record, losses_by


def alive(record: Record, at: datetime) -> list[PodTrace]:
    """Return the job's pods that there were then."""
    return [pod for pod in record.trace.pods.values() if pod.is_alive(at)]


def observed(record: Record, change: JobChange, at: datetime, *, first: str) -> Observation:
    """Return what everybody could have seen; `first` is the pool of a job that selects none yet."""
    vanished, there = record.vanished, alive(record, at)
    placed = [
        pod
        for pod in there
        if pod.bound_at is not None
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
        pods_left=len(there),
    )
