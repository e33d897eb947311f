"""Compares pacing to a deadline with fixed ladders, Uniform Progress, the greedy rule, and hindsight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from pulumi_holdfast.analysis.replay.baselines import Baseline, replay_baseline, restart_cost
from pulumi_holdfast.analysis.replay.comparison import MOST_STARTS, mean
from pulumi_holdfast.analysis.replay.ladders import NamedPolicy
from pulumi_holdfast.analysis.replay.market import Market, Workload
from pulumi_holdfast.analysis.replay.replay import Replayed, hindsight, horizon, on_demand, replay
from pulumi_holdfast.ladder.ladder import Policy

_HOUR: Final = timedelta(hours=1)

# Durations are kept in whole microseconds, the hours of a replay as a fraction.
_ROUNDING: Final = 1e-6

#: The time in which an available machine is ready, beyond its boot.
_READY_AFTER_BOOT: Final = timedelta(minutes=1)

_PACED: Final = "paced, "


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The replays of one way to run the job within one deadline, from each start."""

    replayed: tuple[Replayed, ...]
    within: timedelta

    @property
    def cost(self) -> float | None:
        """The mean cost; that of an unfinished job is what it has cost so far."""
        return mean([each.cost for each in self.replayed])

    @property
    def worst_cost(self) -> float:
        """The largest cost."""
        return max(each.cost for each in self.replayed)

    @property
    def hours(self) -> float | None:
        """The mean duration."""
        return mean([each.hours for each in self.replayed])

    @property
    def late(self) -> int:
        """How many replays end after the deadline, or not at all."""
        limit = self.within / _HOUR + _ROUNDING
        return sum(not each.is_finished or each.hours > limit for each in self.replayed)


@dataclass(frozen=True, kw_only=True)
class DeadlineRow:
    """One way to run the job, with its replays for each deadline."""

    name: str
    kept: tuple[Kept, ...]
    is_paced: bool = False
    is_ladder: bool = False


@dataclass(frozen=True, kw_only=True)
class DeadlineComparison:
    """All rows, and the mean cost of hindsight for each deadline; None where a start has no schedule in time."""

    job: Workload
    markets: tuple[Market, ...]
    starts: int
    within: tuple[timedelta, ...]
    rows: tuple[DeadlineRow, ...]
    hindsight: tuple[float | None, ...]

    def best(self, place: int) -> DeadlineRow | None:
        """The cheapest of the ladders, paced or not, of which no replay is late within a deadline; None if each is."""
        kept = [row for row in self.rows if row.is_ladder and not row.kept[place].late]
        return min(kept, key=lambda row: row.kept[place].cost or 0.0, default=None)


def separately(market: Market) -> tuple[Market, ...]:
    """Return a market for each pool with a trace, with the pools without one below it."""
    below = tuple(each for each in market.pools if each.trace is None)
    return tuple(Market(pools=(each, *below)) for each in market.pools if each.trace is not None)


def compare_deadlines(
    job: Workload,
    ladders: Sequence[tuple[Market, Sequence[NamedPolicy]]],
    *,
    starts: int,
    within: Sequence[timedelta],
    hold_timeout: timedelta | None,
) -> DeadlineComparison:
    """Replay each ladder fixed and paced, and the baselines, on each market from starts spread over its traces.

    The ladders of all markets have the same names. `hold_timeout`: for paced ladders; None for the boot of a machine.

    Raises ValueError for a deadline in which on-demand does not finish, one beyond the traces, and without a start.
    """
    markets = tuple(market for market, _ in ladders)
    _check(job, markets, starts, within)
    begins = [(market, _starts(job, market, starts)) for market in markets]
    rows = [_row("on-demand", within, [lambda _limit: [on_demand(job)]])]
    for number, named in enumerate(ladders[0][1]):
        policies = [
            (market, begin, each[number].policy)
            for (market, begin), (_, each) in zip(begins, ladders, strict=True)
        ]
        rows.append(replace(_fixed(named.name, job, policies, within), is_ladder=True))
        rows.append(replace(_paced(named.name, job, policies, within, hold_timeout), is_ladder=True))
    rows += [_baseline(rule, job, begins, within) for rule in Baseline]
    return DeadlineComparison(
        job=job,
        markets=markets,
        starts=starts,
        within=tuple(within),
        rows=tuple(rows),
        hindsight=tuple(_hindsight(job, begins, limit) for limit in within),
    )


def _check(job: Workload, markets: Sequence[Market], starts: int, within: Sequence[timedelta]) -> None:
    if not 1 <= starts <= MOST_STARTS:
        raise ValueError(f"starts: got {starts}; allowed: 1 to {MOST_STARTS}")
    longest = min(horizon(job, market) for market in markets)
    for limit in within:
        if not job.undisturbed <= limit <= longest:
            raise ValueError(
                f"finish-within: got {limit / _HOUR:.4g} h; allowed: {job.undisturbed / _HOUR:.4g} h, which the job takes "
                f"undisturbed, to {longest / _HOUR:.4g} h, the length of the traces"
            )


def _starts(job: Workload, market: Market, starts: int) -> tuple[timedelta, ...]:
    until = horizon(job, market)
    return tuple(until * place / starts for place in range(starts)) if market.length else (timedelta(0),)


def _row(
    name: str, within: Sequence[timedelta], replays: Sequence[Callable[[timedelta], list[Replayed]]]
) -> DeadlineRow:
    return DeadlineRow(
        name=name,
        kept=tuple(
            Kept(replayed=tuple(done for each in replays for done in each(limit)), within=limit)
            for limit in within
        ),
    )


def _fixed(
    name: str,
    job: Workload,
    policies: Sequence[tuple[Market, Sequence[timedelta], Policy]],
    within: Sequence[timedelta],
) -> DeadlineRow:
    # A ladder without a deadline is the same for all of them.
    done = [replay(job, market, policy, at) for market, begin, policy in policies for at in begin]
    return _row(name, within, [lambda _limit: done])


def _paced(
    name: str,
    job: Workload,
    policies: Sequence[tuple[Market, Sequence[timedelta], Policy]],
    within: Sequence[timedelta],
    hold_timeout: timedelta | None,
) -> DeadlineRow:
    def replays(limit: timedelta) -> list[Replayed]:
        return [
            replay(job, market, _with_costs(policy, job, hold_timeout), at, finish_within=limit)
            for market, begin, policy in policies
            for at in begin
        ]

    return replace(_row(f"{_PACED}{name}", within, [replays]), is_paced=True)


def _with_costs(policy: Policy, job: Workload, hold_timeout: timedelta | None) -> Policy:
    return replace(
        policy,
        restart_cost=max(timedelta(seconds=1), restart_cost(job)),
        hold_timeout=hold_timeout or job.boot + _READY_AFTER_BOOT,
    )


def _baseline(
    rule: Baseline,
    job: Workload,
    begins: Sequence[tuple[Market, Sequence[timedelta]]],
    within: Sequence[timedelta],
) -> DeadlineRow:
    def replays(limit: timedelta) -> list[Replayed]:
        return [
            replay_baseline(job, market, rule, at, finish_within=limit)
            for market, begin in begins
            for at in begin
        ]

    return _row(rule.value, within, [replays])


def _hindsight(
    job: Workload, begins: Sequence[tuple[Market, Sequence[timedelta]]], limit: timedelta
) -> float | None:
    costs = [hindsight(job, market, at, limit) for market, begin in begins for at in begin]
    found = [cost for cost in costs if cost is not None]
    return mean(found) if len(found) == len(costs) else None
