"""Replaying one job from one start: the controller's decisions on what the traces say there was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from holdfast.analysis.replay.hindsight import least_cost, stretches
from holdfast.analysis.simulation.job import JobPlan
from holdfast.analysis.simulation.run import ENDLESS, Simulation, Steps, simulate
from holdfast.fallback.state_machine.observation import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.analysis.replay.market import Market, Workload
    from holdfast.fallback.policy.policy import Policy

_HOUR: Final = timedelta(hours=1)
_AT_ONCE: Final = timedelta(0)

# A replay has no date of its own: any that a state may bear will do.
_START: Final = datetime(2020, 1, 1, tzinfo=UTC)

# Where every pool always has capacity nothing disturbs a job, and twice the time is plenty.
_ENOUGH: Final = 2


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """What became of a job.

    `is_finished`: within the length of the traces. `cost`: where the undisturbed job on on-demand costs 1; of one that
    did not finish, what was paid until then. `hours`: until it finished. `moves`: tiers entered after the first.
    `evictions`: of the gang. `lost_hours`: in which it had its machines and got no further: restarts, and work that was
    done again. `waited_hours`: in which it had not all of them.
    """

    is_finished: bool
    cost: float
    hours: float
    moves: int
    evictions: int
    lost_hours: float
    waited_hours: float


def horizon(job: Workload, market: Market) -> timedelta:
    """For how long a job is replayed: once through the traces."""
    return market.length or job.undisturbed * _ENOUGH


def on_demand(job: Workload) -> Replayed:
    """What the job is on on-demand alone, undisturbed, at a price of 1."""
    return Replayed(
        is_finished=True,
        cost=1.0,
        hours=job.undisturbed / _HOUR,
        moves=0,
        evictions=0,
        lost_hours=job.restart / _HOUR,
        waited_hours=job.boot / _HOUR,
    )


def replay(job: Workload, market: Market, policy: Policy, start: timedelta) -> Replayed:
    """Let a job follow a policy from a start in the traces, by the same decisions as the controller's."""
    plan = JobPlan(
        uid="job",
        created=_START,
        pool=policy.tiers[0].pool,
        pods=job.nodes,
        work=job.work,
        boot=job.boot,
        restart=job.restart,
        grace=job.grace,
        checkpoint_every=job.checkpoint_every,
    )
    pools = {
        pool: [(_START + at, number) for at, number in steps]
        for pool, steps in market.from_start(start, job.nodes).items()
        # What happens elsewhere would be looked at for nothing.
        if policy.rank_of(pool) is not None
    }
    run = simulate([plan], policy, Steps(pools=pools), start=_START, until=_START + horizon(job, market))
    return _replayed(run, job, market.prices)


def hindsight(job: Workload, market: Market, start: timedelta, within: timedelta) -> float | None:
    """What the job costs at least from a start if it is to finish within a time, where undisturbed on-demand costs 1.

    On-demand at a price of 1 may be used beside the market's pools. None: it cannot be done in that time.
    """
    steps = market.from_start(start, job.nodes)
    pools = [(each.price, steps[each.pool]) for each in market.pools]
    until = min(within, horizon(job, market))
    bound = least_cost(
        stretches([*pools, (1.0, [(_AT_ONCE, ENDLESS)])], job.nodes, until),
        work=job.work / _HOUR,
        restart=job.restart / _HOUR,
    )
    return None if bound is None else bound / (job.undisturbed / _HOUR)


def _replayed(run: Simulation, job: Workload, prices: Mapping[str, float]) -> Replayed:
    (ran,) = run.jobs
    paid = sum(use.nodes * prices[use.pool] * ((use.end - use.start) / _HOUR) for use in run.uses)
    took = (ran.finished_at or run.now) - _START
    return Replayed(
        is_finished=ran.outcome is Outcome.COMPLETED,
        cost=paid / (job.nodes * (job.undisturbed / _HOUR)),
        hours=took / _HOUR,
        moves=sum(said.report.reason == "Moved" for said in run.said),
        evictions=ran.restarts,
        lost_hours=(ran.placed_for - ran.progress) / _HOUR,
        waited_hours=(took - ran.placed_for) / _HOUR,
    )
