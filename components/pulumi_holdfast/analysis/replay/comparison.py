"""Compares ladders with on-demand, with staying on spot and with hindsight, over several starts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from statistics import fmean
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.analysis.replay.ladders import NamedPolicy, stay
from pulumi_holdfast.analysis.replay.replay import Replayed, hindsight, horizon, on_demand, replay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_holdfast.analysis.replay.market import Market, Workload


@dataclass(frozen=True, kw_only=True)
class Averages:
    """The averages of a row; None if the job finished from no start.

    The job finished from `finished` of `starts`. `at_best`: the average cost of hindsight that finishes no later. `late`:
    how many finished after the deadline.
    """

    starts: int
    finished: int
    late: int
    cost: float | None
    worst_cost: float | None
    at_best: float | None
    hours: float | None
    worst_hours: float | None
    moves: float | None
    evictions: float | None
    lost_hours: float | None
    waited_hours: float | None


def averages(row: Row, within_hours: float) -> Averages:
    """Return the averages of a row."""
    done = [each for each in row.replayed if each.is_finished]
    costs, hours = [each.cost for each in done], [each.hours for each in done]
    return Averages(
        starts=len(row.replayed),
        finished=len(done),
        late=sum(each.hours > within_hours for each in row.replayed),
        cost=mean(costs),
        worst_cost=max(costs, default=None),
        at_best=mean([each for each in row.at_best if each is not None]),
        hours=mean(hours),
        worst_hours=max(hours, default=None),
        moves=mean([each.moves for each in done]),
        evictions=mean([each.evictions for each in done]),
        lost_hours=mean([each.lost_hours for each in done]),
        waited_hours=mean([each.waited_hours for each in done]),
    )


def mean(values: Sequence[float]) -> float | None:
    """The mean of values, None without values."""
    return fmean(values) if values else None


_HOUR: Final = timedelta(hours=1)

# Durations are kept in whole microseconds, the hours of a run as a fraction.
_ROUNDING: Final = timedelta(milliseconds=1)

MOST_STARTS: Final = 10_000


@dataclass(frozen=True, kw_only=True)
class Row:
    """One way to run the job: its replay from each start, and the cost of hindsight that is as fast.

    `at_best` is None for a start from which the job did not finish.
    """

    name: str
    replayed: tuple[Replayed, ...]
    at_best: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All rows, and the cost of hindsight within a time: None for a start from which no schedule finishes.

    `has_deadline`: the user set that time, and rows can be late; otherwise it is the length of the traces.
    """

    job: Workload
    market: Market
    starts: tuple[timedelta, ...]
    rows: tuple[Row, ...]
    within: timedelta
    has_deadline: bool
    hindsight: tuple[float | None, ...]


def compare(
    job: Workload,
    market: Market,
    policies: Sequence[NamedPolicy],
    *,
    starts: int,
    within: timedelta | None = None,
) -> Comparison:
    """Replay every policy, on-demand and staying on each pool that has a trace from starts spread over the traces.

    `within`: the time in which hindsight must finish; None for the length of the traces.

    Raises ValueError for traces or a time shorter than the job, and without a start.
    """
    until = horizon(job, market)
    for field, limit in (("the traces", until), ("within", within)):
        if limit is not None and limit < job.undisturbed:
            raise ValueError(
                f"{field}: {limit / _HOUR:.4g} h; allowed: as long as the job is undisturbed, {job.undisturbed / _HOUR:.4g} h, "
                "or longer"
            )
    if not 1 <= starts <= MOST_STARTS:
        raise ValueError(f"starts: got {starts}; allowed: 1 to {MOST_STARTS}")
    # From all starts alike where nothing ever changes.
    begin = tuple(until * place / starts for place in range(starts)) if market.length else (timedelta(0),)
    stays = [stay(each.pool) for each in market.pools if each.trace]
    limit = until if within is None else min(within, until)
    return Comparison(
        job=job,
        market=market,
        starts=begin,
        rows=(
            _row("on-demand", [on_demand(job) for _ in begin], job, market, begin),
            *(
                _row(each.name, [replay(job, market, each.policy, at) for at in begin], job, market, begin)
                for each in (*stays, *policies)
            ),
        ),
        within=limit,
        has_deadline=within is not None,
        hindsight=tuple(hindsight(job, market, at, limit) for at in begin),
    )


def _row(
    name: str, replayed: Sequence[Replayed], job: Workload, market: Market, begin: Sequence[timedelta]
) -> Row:
    at_best = [
        hindsight(job, market, at, timedelta(hours=each.hours) + _ROUNDING) if each.is_finished else None
        for at, each in zip(begin, replayed, strict=True)
    ]
    return Row(name=name, replayed=tuple(replayed), at_best=tuple(at_best))
