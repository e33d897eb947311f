"""The least cost of a job for a scheduler that knows the traces in advance: the bound to compare ladders with.

A schedule is a sequence of runs, each on one pool while that has capacity for the whole gang. A run is paid for from
its start and makes progress after the restart time; no work is lost, machines boot in advance at no cost, and waiting
costs nothing. No ladder costs less than the best such schedule.

The cheapest schedule with enough progress before a deadline is bounded from below by Lagrange's dual: each hour of
progress has a worth, the schedule with the best balance is found by dynamic programming over the times at which
capacity or a price changes (a schedule that ends a run between two of them is never better balanced), and the worth is raised
until the progress is sufficient. The bound is the highest of all balances. It is not exact: the last run can be cut short
but not its restart, so the best schedule may cost about one restart more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Final, NamedTuple

_HOUR: Final = timedelta(hours=1)

# The dual has as many corners as there are schedules on it: tens. Each round is a valid bound by itself.
_MOST_ROUNDS: Final = 200
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Hours without a change of capacity or price, and the prices of the pools with capacity for the gang, by pool number."""

    hours: float
    prices: tuple[tuple[int, float], ...]


class Schedule(NamedTuple):
    """The cost of a schedule, and its hours of progress."""

    cost: float
    progress: float


def least_cost(stretches: Sequence[Stretch], *, work: float, restart: float) -> float | None:
    """Return the lower bound of the cost of `work` hours within the stretches, in hours at a price of 1; None if impossible.

    `restart`: hours that each run is paid for before it makes progress.
    """
    low = Schedule(0.0, 0.0)
    high = _best(stretches, restart, cost_weight=0.0, worth=1.0)
    if high.progress < work - _ROUNDING:
        return None
    # There is one run at least, and no pool is cheaper than the cheapest.
    bound = (work + restart) * min(price for stretch in stretches for _, price in stretch.prices)
    for _ in range(_MOST_ROUNDS):
        worth = (high.cost - low.cost) / (high.progress - low.progress)
        found = _best(stretches, restart, cost_weight=1.0, worth=worth)
        bound = max(bound, found.cost + worth * (work - found.progress))
        if found.cost - worth * found.progress >= low.cost - worth * low.progress - _ROUNDING:
            break
        low, high = (low, found) if found.progress >= work else (found, high)
    return bound


def stretches(
    pools: Sequence[tuple[Sequence[tuple[timedelta, float]], Sequence[tuple[timedelta, int]]]],
    nodes: int,
    until: timedelta,
) -> list[Stretch]:
    """Split the time until a deadline where any pool's price or capacity for the gang changes.

    `pools`: the prices and the capacity of each, as steps.
    """
    changes = {at for _, steps in pools for at in _turns(steps, nodes)}
    changes |= {at for prices, _ in pools for at, _ in prices}
    times = [*sorted(at for at in changes if at < until), until]
    cut: list[Stretch] = []
    for at, then in pairwise(times):
        open_now = tuple(
            (number, value_at(prices, at))
            for number, (prices, steps) in enumerate(pools)
            if value_at(steps, at) >= nodes
        )
        cut.append(Stretch(hours=(then - at) / _HOUR, prices=open_now))
    return cut


def value_at(steps: Sequence[tuple[timedelta, float]], at: timedelta) -> float:
    """Return the value of steps at a time; the first of them is at the start."""
    return steps[bisect_right(steps, at, key=lambda step: step[0]) - 1][1]


def _turns(steps: Sequence[tuple[timedelta, int]], nodes: int) -> Iterator[timedelta]:
    before = None
    for at, number in steps:
        if (number >= nodes) is not before:
            yield at
        before = number >= nodes


def _best(stretches: Sequence[Stretch], restart: float, *, cost_weight: float, worth: float) -> Schedule:
    """The schedule with the least `cost_weight * cost - worth * progress`.

    A run shorter than a restart counts as negative progress here; it is never part of the best, which would be better
    without it.
    """
    idle = (0.0, 0.0, 0.0)  # balance, cost, progress
    runs: Mapping[int, tuple[float, float, float]] = {}
    for stretch in stretches:
        idle = min([idle, *runs.values()])
        begun = (idle[0] + worth * restart, idle[1], idle[2] - restart)
        going: dict[int, tuple[float, float, float]] = {}
        for number, price in stretch.prices:
            run = runs.get(number)
            balance, cost, progress = begun if run is None or begun[0] < run[0] else run
            added = stretch.hours * price
            going[number] = (
                balance + cost_weight * added - worth * stretch.hours,
                cost + added,
                progress + stretch.hours,
            )
        runs = going
    _, cost, progress = min([idle, *runs.values()])
    return Schedule(cost, progress)
