"""Policies to compare pacing with: Uniform Progress and the greedy rule of *Can't Be Late* (NSDI '24).

They have what a scheduler in a cluster does not: they know at once, and for free, which pools have capacity. Machines, restarts
and lost work cost them the same as the controller's jobs.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.analysis.replay.hindsight import value_at
from pulumi_holdfast.analysis.replay.replay import Replayed, horizon

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_holdfast.analysis.replay.market import Market, Workload

_HOUR: Final = timedelta(hours=1)
_NOTHING: Final = timedelta(0)

# Between changes of capacity the rules are applied this often, and what must not come late comes this much earlier.
_TICK: Final = timedelta(minutes=1)

_ON_DEMAND: Final = "on-demand"


class Baseline(StrEnum):
    """The rule that decides while a job is not on spot."""

    UNIFORM_PROGRESS = (
        "Uniform Progress"  #: on on-demand while less is done than an even pace to the deadline has done
    )
    GREEDY = (
        "greedy"  #: waits for spot as long as on-demand can still finish in time, then stays on on-demand
    )


@dataclass(kw_only=True)
class _Run:
    """A job under way. `place`: its pool, None while it waits; `setup`: the start of its machines and program yet to come."""

    place: str | None = None
    setup: timedelta = _NOTHING
    leaving: timedelta = _NOTHING
    left: str = _ON_DEMAND
    is_committed: bool = False
    elapsed: timedelta = _NOTHING
    progress: timedelta = _NOTHING
    paid: float = 0.0
    waited: timedelta = _NOTHING
    starts: int = 0
    evictions: int = 0


@dataclass(frozen=True, kw_only=True)
class _Task:
    """The job, its deadline, and the prices over time; `restart`: what a change of machines costs at most."""

    job: Workload
    within: timedelta
    rule: Baseline
    prices: Mapping[str, Sequence[tuple[timedelta, float]]]

    @property
    def restart(self) -> timedelta:
        """The declared cost of a restart, as the controller's policy has it."""
        return restart_cost(self.job)

    def price(self, pool: str, at: timedelta) -> float:
        """What a machine of the pool costs."""
        return value_at(self.prices[pool], at)


def restart_cost(job: Workload) -> timedelta:
    """Return the longest time from the loss of a job's machines until it has its earlier progress again."""
    return job.boot + job.restart + job.grace + (job.checkpoint_every or _NOTHING)


def replay_baseline(
    job: Workload, market: Market, rule: Baseline, start: timedelta, *, finish_within: timedelta
) -> Replayed:
    """Replay a job that follows a rule from a start in the traces."""
    steps, prices = market.from_start(start, job.nodes), market.prices_from_start(start)
    spot = [each.pool for each in market.pools if each.trace is not None]
    capacity = {pool: steps[pool] for pool in spot}
    task = _Task(
        job=job,
        within=finish_within,
        rule=rule,
        prices={**{pool: prices[pool] for pool in spot}, _ON_DEMAND: [(_NOTHING, 1.0)]},
    )
    changes = sorted({at for each in (*capacity.values(), *task.prices.values()) for at, _ in each})
    until, run = horizon(job, market), _Run()
    while run.progress < job.work and run.elapsed < until:
        available = [
            pool
            for pool in sorted(capacity, key=lambda pool: task.price(pool, run.elapsed))
            if value_at(capacity[pool], run.elapsed) >= job.nodes
        ]
        _settle(run, task, available)
        _pass(run, task, min(_next(changes, run.elapsed), run.elapsed + _TICK, until))
    return Replayed(
        is_finished=run.progress >= job.work,
        cost=run.paid / (job.undisturbed / _HOUR),
        hours=run.elapsed / _HOUR,
        moves=max(0, run.starts - 1),
        evictions=run.evictions,
        lost_hours=(run.elapsed - run.waited - run.progress) / _HOUR,
        waited_hours=run.waited / _HOUR,
    )


def _next(changes: Sequence[timedelta], at: timedelta) -> timedelta:
    place = bisect_right(changes, at)
    return changes[place] if place < len(changes) else timedelta.max


def _settle(run: _Run, task: _Task, available: Sequence[str]) -> None:
    """Apply an eviction, then the rule."""
    if run.place not in {None, _ON_DEMAND, *available}:
        run.evictions += 1
        if task.job.checkpoint_every is not None:
            run.progress -= run.progress % task.job.checkpoint_every
        run.place = None
    wanted = _wanted(run, task, available)
    if wanted == run.place:
        return
    if run.place is not None:
        run.leaving, run.left = task.job.grace, run.place
    if wanted is not None:
        run.setup = task.job.boot + task.job.restart
        run.starts += 1
    run.place = wanted


def _wanted(run: _Run, task: _Task, available: Sequence[str]) -> str | None:
    if run.is_committed:
        return _ON_DEMAND
    if run.place not in {None, _ON_DEMAND}:
        return run.place
    left, time_left = task.job.work - run.progress, task.within - run.elapsed
    has_slack = time_left >= left + 2 * task.restart + _TICK
    if run.place is None and not has_slack:
        run.is_committed = True
        return _ON_DEMAND
    if available and has_slack:
        return available[0]
    if task.rule is Baseline.GREEDY:
        return run.place
    if run.place is None:
        return _ON_DEMAND if run.progress < _even(task, run.elapsed) else None
    return None if run.progress >= _even(task, run.elapsed + 2 * task.restart) else _ON_DEMAND


def _even(task: _Task, at: timedelta) -> timedelta:
    """The work that is done at a time when all of it is spread evenly until the deadline."""
    return task.job.work * (at / task.within)


def _pass(run: _Run, task: _Task, end: timedelta) -> None:
    """Bill the machines and add the progress until a time, or until the state changes before it."""
    span = end - run.elapsed
    if run.leaving > _NOTHING:
        span = min(span, run.leaving)
        run.leaving -= span
        run.paid += span / _HOUR * task.price(run.left, run.elapsed)
    elif run.place is None:
        run.waited += span
    else:
        ahead = run.setup if run.setup > _NOTHING else task.job.work - run.progress
        span = min(span, ahead)
        if run.setup > _NOTHING:
            run.setup -= span
        else:
            run.progress += span
        run.paid += span / _HOUR * task.price(run.place, run.elapsed)
    run.elapsed += span
