"""What a simulated job gets done: work, and what evictions take back of it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from holdfast.analysis.simulation.job import Nodes
from holdfast.fallback.state_machine.observation import Cause, Loss, Outcome

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.analysis.simulation.job import SimulatedJob

_NOTHING = timedelta(0)
_REMEMBERED = 8


def completion(job: SimulatedJob, now: datetime) -> datetime | None:
    """When the job completes if nothing befalls it."""
    works_from = job.works_from
    if works_from is None or job.plan.work is None or job.outcome is not None:
        return None
    return max(works_from, now) + job.plan.work - job.progress


def work(job: SimulatedJob, start: datetime, end: datetime) -> None:
    """Let the job make the progress of a time in which nothing changes."""
    works_from = job.works_from
    if works_from is not None:
        job.placed_for += end - start
        job.progress += max(_NOTHING, end - max(start, works_from))


def evict(job: SimulatedJob, pods: int, now: datetime) -> None:
    """Lose pods to a reclaim: the gang restarts on what is left, from its latest checkpoint."""
    job.restarts += 1
    lost = Loss(
        pod=f"{job.plan.uid}/{job.restarts}/{pods}", at=now, cause=Cause.EVICTION, pool=job.nodes.pool
    )
    # Nobody sees for ever what became of a pod, and a long replay would carry all of them along.
    job.losses = [*job.losses[-_REMEMBERED:], lost]
    if job.plan.checkpoint_every is not None:
        since_checkpoint = job.progress % job.plan.checkpoint_every
        job.progress -= since_checkpoint
        job.lost += since_checkpoint
    job.placed_at = None


def finish(job: SimulatedJob, now: datetime) -> None:
    """End the job well: its nodes are paid for no longer."""
    job.outcome = Outcome.COMPLETED
    job.finished_at = now
    job.placed_at = None
    job.nodes = Nodes(pool=job.nodes.pool)
