"""What is seen of a simulated job: the same observation that the adapters make of a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.fallback.state_machine.observation import HeldCapacity, Observation, Rival

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from holdfast.analysis.simulation.job import SimulatedJob


def observed(job: SimulatedJob, jobs: Sequence[SimulatedJob], now: datetime) -> Observation:
    """The job among the others."""
    placed = 0 if job.suspended else min(job.nodes.there, job.plan.pods)
    is_terminating = job.leaving is not None
    return Observation(
        uid=job.plan.uid,
        created=job.plan.created,
        now=now,
        suspended=job.suspended,
        at_rest=job.suspended and not is_terminating,
        outcome=job.outcome,
        pool=job.nodes.pool,
        restarts=job.restarts,
        losses=tuple(job.losses),
        pods_expected=job.plan.pods,
        pods_placed=placed,
        pods_started=placed,
        pods_left=job.plan.pods if is_terminating or not job.suspended else 0,
        shapes=job.shapes,
        held=_held(job),
        rival=max(
            (
                Rival(uid=other.plan.uid, created=other.plan.created)
                for other in jobs
                if other is not job and _is_rival(other, job)
            ),
            default=None,
        ),
    )


def _held(job: SimulatedJob) -> HeldCapacity | None:
    if job.held is None:
        return None
    placed = min(job.held.there, job.placeholders)
    return HeldCapacity(
        pool=job.held.pool, pods=job.placeholders, placed=placed, tainted=placed if job.is_tainted else 0
    )


def _is_rival(other: SimulatedJob, job: SimulatedJob) -> bool:
    waits = not other.suspended and 0 < other.nodes.there < other.plan.pods
    return waits and other.nodes.pool == job.nodes.pool
