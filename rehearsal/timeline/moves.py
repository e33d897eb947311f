"""A job's moves from tier to tier, with the time of each step. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from holdfast.rehearsal.timeline.traces import JobTrace, PodTrace


@dataclass(frozen=True, kw_only=True)
class Move:
    """From one tier to another.

    It is `suspended_at`; the last pod of the gang before has ended at `gone_at`; `resumed_at`; all pods of the next gang
    have nodes at `bound_at` and run at `running_at`. What did not come about is None.
    """

    source: str
    target: str
    suspended_at: datetime
    gone_at: datetime | None = None
    resumed_at: datetime | None = None
    bound_at: datetime | None = None
    running_at: datetime | None = None


def moves_of(trace: JobTrace, pods: int) -> tuple[Move, ...]:
    """Return the moves of a job of so many pods, first to last."""
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
    # None is made while a job is suspended: what was born since is of the gang that was resumed.
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
    """The last of so many times, None while there are fewer."""
    known = sorted(time for time in times if time is not None)
    return known[count - 1] if 0 < count <= len(known) else None
