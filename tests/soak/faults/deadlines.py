"""The program of a job with a deadline, and whether the job is late by the controller's fault. Pure but for `Programs`.

The program trains while all of its pods run, and each start costs it a part of the declared `restartCost`. Nothing else is
lost: a kill costs it what its restart costs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from pulumi_holdfast.rehearsal.errors import FAILURES
from pulumi_holdfast.rehearsal.timeline.recorder import JobTimelineRecorder
from pulumi_holdfast.rehearsal.timeline.traces import JobTrace
from tests.support.background import repeating

WORK: Final = timedelta(minutes=4)
RESTART_COST: Final = timedelta(seconds=60)
#: Enough for a few restarts, and too little to wait for spot indefinitely.
_SLACK: Final = 5 * RESTART_COST
#: How long it takes until each further job of a wave has its nodes, on two cores.
_SLACK_PER_JOB: Final = timedelta(seconds=3)
#: What a start costs the program itself; suspending, scheduling and binding take the rest of the declared cost.
_START: Final = timedelta(seconds=15)
_NOTHING: Final = timedelta(0)
_LOOK_SECONDS: Final = 1.0
# A lease of 15 s, its retries, and the first lists of a new leader.
_LEADERLESS: Final = timedelta(seconds=40)


def finish_by(begun: datetime, jobs: int) -> datetime:
    """Return the deadline in a run of so many jobs, which are created from `begun` on."""
    return begun + WORK + _SLACK + _SLACK_PER_JOB * jobs


@dataclass(frozen=True, kw_only=True)
class Work:
    """How much a job's program has done by a time, and when it was done with all of it; None if it is not."""

    done: timedelta
    finished_at: datetime | None = None


def work_of(trace: JobTrace, pods: int, until: datetime) -> Work:
    """Return how much of WORK the program of a job of `pods` workers has done by a time."""
    done = _NOTHING
    for since, end in _runs(trace, pods, until):
        ran = max(_NOTHING, end - since - _START)
        if done + ran >= WORK:
            return Work(done=WORK, finished_at=end - (done + ran - WORK))
        done += ran
    return Work(done=done)


def _runs(trace: JobTrace, pods: int, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield the times in which all workers ran and none was being taken away."""
    workers = [pod for pod in trace.pods.values() if not pod.is_head and pod.running_at is not None]
    spans = [
        (pod.running_at, min(at for at in (pod.leaving_at, pod.lost_at, pod.ended_at, until) if at))
        for pod in workers
        if pod.running_at is not None
    ]
    times = [*sorted({at for span in spans for at in span}), until]
    begun: datetime | None = None
    for at, after in pairwise(times):
        is_whole = sum(since <= at < end for since, end in spans) >= pods
        if is_whole and begun is None:
            begun = at
        if begun is not None and (not is_whole or after == until):
            yield begun, at if not is_whole else until
            begun = None


def late_by_fault(
    trace: JobTrace,
    pods: int,
    *,
    finish_by: datetime,
    until: datetime,
    last_pool: str,
    kills: Sequence[datetime],
) -> str | None:
    """Return why a job is late by the controller's fault; None if it is not, or cannot be judged yet.

    A move that takes longer than the declared cost is none of its faults, and neither is a time in which it was cut off.
    """
    work = work_of(trace, pods, until)
    ended = work.finished_at or until
    excess = _slow_moves(trace, until, last_pool) + sum(
        (_LEADERLESS for kill in kills if kill < ended), _NOTHING
    )
    if ended <= finish_by + excess:
        return None
    done = "is done" if work.finished_at else f"has {work.done} of {WORK} done"
    return (
        f"its deadline was {finish_by:%X}, it {done} at {ended:%X}, and slow moves explain only "
        f"{excess.total_seconds():.0f} s of that"
    )


def _slow_moves(trace: JobTrace, until: datetime, last_pool: str) -> timedelta:
    """What suspensions, and waits for machines that are always there, took beyond the declared cost."""
    excess, since = _NOTHING, None
    for change in trace.changes:
        is_moving = change.suspended or (change.phase == "Waiting" and change.pool == last_pool)
        if is_moving and since is None:
            since = change.at
        elif not is_moving and since is not None:
            excess += max(_NOTHING, change.at - since - RESTART_COST + _START)
            since = None
    if since is not None:
        excess += max(_NOTHING, until - since - RESTART_COST + _START)
    return excess


class Programs:
    """Completes each job with a deadline when its program has done its work."""

    def __init__(
        self, recorder: JobTimelineRecorder, jobs: Mapping[str, int], complete: Callable[[str], None]
    ) -> None:
        self._recorder = recorder
        self._jobs = dict(jobs)
        self._complete = complete

    @contextmanager
    def running(self) -> Generator[Programs]:
        """Run the programs for the length of the block."""
        with repeating(self._look, _LOOK_SECONDS):
            yield self

    def _look(self) -> None:
        with self._recorder.frozen():
            now = datetime.now(UTC)
            finished = [
                name
                for name, pods in self._jobs.items()
                if (trace := self._recorder.job(name)).changes
                and not trace.last.outcome
                and work_of(trace, pods, now).finished_at is not None
            ]
        for name in finished:
            # An API server that is being restarted does not answer; the next look completes the job.
            with suppress(*FAILURES):
                self._complete(name)
