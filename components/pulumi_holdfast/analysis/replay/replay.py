"""Replays one job from one start: the controller's decisions on the capacity in the traces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.analysis.replay.hindsight import least_cost, stretches
from pulumi_holdfast.analysis.simulation.job import JobPlan
from pulumi_holdfast.analysis.simulation.run import ENDLESS, Simulation, Steps, simulate
from pulumi_holdfast.controller.jobs.observation import JobOutcome
from pulumi_holdfast.ladder.windows import CapacityWindow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_holdfast.analysis.replay.market import Market, Workload
    from pulumi_holdfast.ladder.ladder import Policy

_HOUR: Final = timedelta(hours=1)
_AT_ONCE: Final = timedelta(0)

# Longer than a reconcile: a job that leaves by the end of its block is not evicted from it.
_LEEWAY: Final = timedelta(minutes=1)

# A replay has no date of its own: any that a state may bear will do.
_START: Final = datetime(2020, 1, 1, tzinfo=UTC)

# If every pool always has capacity, a job runs without evictions, and twice its time is sufficient.
_ENOUGH: Final = 2


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """The result of a replay.

    `is_finished`: within the length of the traces. `cost`: relative to the job without evictions on on-demand; for an
    unfinished job, the cost until the end of the traces. `hours`: until it finished. `moves`: tiers entered after the
    first. `evictions`: of the gang. `lost_hours`: with all machines but without progress: restarts and repeated work.
    `waited_hours`: without all machines.
    """

    is_finished: bool
    cost: float
    hours: float
    moves: int
    evictions: int
    lost_hours: float
    waited_hours: float


def horizon(job: Workload, market: Market) -> timedelta:
    """The longest duration of a replay: the length of the traces."""
    return market.length or job.undisturbed * _ENOUGH


def on_demand(job: Workload) -> Replayed:
    """The result of the job on on-demand alone, without evictions, at a price of 1."""
    return Replayed(
        is_finished=True,
        cost=1.0,
        hours=job.undisturbed / _HOUR,
        moves=0,
        evictions=0,
        lost_hours=job.restart / _HOUR,
        waited_hours=job.boot / _HOUR,
    )


def replay(
    job: Workload, market: Market, policy: Policy, start: timedelta, *, finish_within: timedelta | None = None
) -> Replayed:
    """Replay a job that follows a policy from a start in the traces, with the controller's own decisions.

    `finish_within`: the job's own deadline after its start; None for none.
    """
    return _replayed(simulated(job, market, policy, start, finish_within=finish_within), job, market)


def simulated(
    job: Workload, market: Market, policy: Policy, start: timedelta, *, finish_within: timedelta | None = None
) -> Simulation:
    """Run the simulation of a replay, to its end.

    Raises ValueError for a policy with `maxPrice` and machines that are there at once.
    """
    if job.boot <= _AT_ONCE and any(tier.max_price is not None for tier in policy.tiers):
        raise ValueError(
            "boot: got 0; allowed with maxPrice: more than 0, because jobs that wait for machines leave a tier that is too "
            "expensive. Set --boot, such as --boot 3m."
        )
    plan = JobPlan(
        uid="job",
        created=_START,
        pool=policy.tiers[0].name,
        pods=job.nodes,
        work=job.work,
        boot=job.boot,
        restart=job.restart,
        grace=job.grace,
        checkpoint_every=job.checkpoint_every,
        finish_by=None if finish_within is None else _START + finish_within,
    )
    blocks = market.blocks_from_start(start)
    pools = {
        # Jobs leave a block by its end; its machines stay until their pods have ended.
        pool: [
            (
                _START + at + (job.grace + _LEEWAY if pool in blocks and not number and at else _AT_ONCE),
                number,
            )
            for at, number in steps
        ]
        for pool, steps in market.from_start(start, job.nodes).items()
        # Changes of other pools would only cost time.
        if policy.rank_of(pool) is not None
    }
    prices = {
        pool: [(_START + at, price) for at, price in steps]
        for pool, steps in market.prices_from_start(start).items()
        if pool in pools
    }
    return simulate(
        [plan],
        _in_blocks(policy, blocks),
        Steps(pools=pools, prices=prices),
        start=_START,
        until=_START + horizon(job, market),
    )


def _in_blocks(policy: Policy, blocks: Mapping[str, tuple[timedelta, timedelta]]) -> Policy:
    """The policy with the windows of its reserved tiers, as the controller reads them from the ladder."""
    tiers = (
        replace(
            tier,
            facts=replace(
                tier.facts, window=CapacityWindow(begins=_START + block[0], ends=_START + block[1])
            ),
        )
        if (block := blocks.get(tier.name)) is not None
        else tier
        for tier in policy.tiers
    )
    return replace(policy, tiers=tuple(tiers))


def hindsight(job: Workload, market: Market, start: timedelta, within: timedelta) -> float | None:
    """Return the least cost of the job from a start within a time, relative to on-demand without evictions.

    On-demand at a price of 1 is available beside the market's pools. None if no schedule finishes in that time.
    """
    steps, prices = market.from_start(start, job.nodes), market.prices_from_start(start)
    pools = [(prices[each.pool], steps[each.pool]) for each in market.pools]
    until = min(within, horizon(job, market))
    bound = least_cost(
        stretches([*pools, ([(_AT_ONCE, 1.0)], [(_AT_ONCE, ENDLESS)])], job.nodes, until),
        work=job.work / _HOUR,
        restart=job.restart / _HOUR,
    )
    return None if bound is None else bound / (job.undisturbed / _HOUR)


def _replayed(run: Simulation, job: Workload, market: Market) -> Replayed:
    (ran,) = run.jobs
    # No price changes within a use.
    paid = sum(
        use.nodes * (run.availability.price(use.pool, use.start) or 0.0) * ((use.end - use.start) / _HOUR)
        for use in run.uses
    )
    data = sum(each.data_per_start * ran.starts[each.pool] for each in market.pools)
    took = (ran.finished_at or run.now) - _START
    return Replayed(
        is_finished=ran.outcome is JobOutcome.COMPLETED,
        cost=(paid / job.nodes + data) / (job.undisturbed / _HOUR),
        hours=took / _HOUR,
        moves=sum(each.report.reason == "Moved" for each in run.events),
        evictions=ran.restarts,
        lost_hours=(ran.placed_for - ran.progress) / _HOUR,
        waited_hours=(took - ran.placed_for) / _HOUR,
    )
