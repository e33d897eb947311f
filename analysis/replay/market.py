"""The pools of a replay: what each costs, and what its trace says there was of it."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from holdfast.analysis.simulation.run import ENDLESS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.analysis.replay.trace import Trace

_AT_ONCE = timedelta(0)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A job: how long it trains undisturbed, on how many instances at once, and what a disturbance costs it.

    `restart`: from the last instance's arrival to the first new step; paid for, and part of every start, the first
    included. `boot`: how long an instance needs to arrive, paid for as well. `grace`: how long pods take to terminate
    on a move. `checkpoint_every`: what an eviction takes back at most; None where the notice is long enough for a
    checkpoint.

    Raises ValueError, naming the field, for what is no job.
    """

    work: timedelta
    nodes: int = 1
    restart: timedelta = _AT_ONCE
    boot: timedelta = _AT_ONCE
    grace: timedelta = _AT_ONCE
    checkpoint_every: timedelta | None = None

    def __post_init__(self) -> None:
        if self.work <= _AT_ONCE:
            raise ValueError(f"work: got {self.work}; allowed: more than 0")
        if self.nodes < 1:
            raise ValueError(f"nodes: got {self.nodes}; allowed: 1 or more")
        for field, value in (("restart", self.restart), ("boot", self.boot), ("grace", self.grace)):
            if value < _AT_ONCE:
                raise ValueError(f"{field}: got {value}; allowed: 0 or more")
        if self.checkpoint_every is not None and self.checkpoint_every <= _AT_ONCE:
            raise ValueError(f"checkpoint_every: got {self.checkpoint_every}; allowed: more than 0")

    @property
    def undisturbed(self) -> timedelta:
        """What it takes on machines that nobody takes away: the measure of all costs."""
        return self.boot + self.restart + self.work


@dataclass(frozen=True, kw_only=True)
class PoolMarket:
    """A pool, its price where on-demand is 1, and its trace; None for a pool that always has capacity.

    Raises ValueError for a price that is none.
    """

    pool: str
    price: float
    trace: Trace | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.price) and self.price > 0):
            raise ValueError(f"price of {self.pool}: got {self.price:g}; allowed: more than 0")


@dataclass(frozen=True, kw_only=True)
class Market:
    """The pools, best first. Traces are taken to begin at the same time, and are cut to the shortest.

    Raises ValueError for no pool, and one that is named twice.
    """

    pools: tuple[PoolMarket, ...]

    def __post_init__(self) -> None:
        names = [each.pool for each in self.pools]
        twice = next((name for name in names if names.count(name) > 1), None)
        if not names or twice is not None:
            raise ValueError(
                f"pools: got {f'{twice} a second time' if twice else 'none'}; allowed: each once"
            )

    @property
    def length(self) -> timedelta | None:
        """What the traces have in common; None where there is none."""
        return min((each.trace.length for each in self.pools if each.trace), default=None)

    @property
    def prices(self) -> Mapping[str, float]:
        """The pools' prices."""
        return {each.pool: each.price for each in self.pools}

    def from_start(self, start: timedelta, nodes: int) -> Mapping[str, Sequence[tuple[timedelta, int]]]:
        """Return each pool's steps as a gang of so many nodes sees them that starts so long after the traces do.

        They go on from the beginning when they end, so that every start sees all of them once. A pool that always has
        capacity has one step.
        """
        length = self.length or _AT_ONCE
        return {
            each.pool: _rotated(each.trace.steps(nodes, length), start, length)
            if each.trace
            else [(_AT_ONCE, ENDLESS)]
            for each in self.pools
        }


def _rotated(
    steps: Sequence[tuple[timedelta, int]], start: timedelta, length: timedelta
) -> list[tuple[timedelta, int]]:
    place = bisect_right(steps, start, key=lambda step: step[0])
    first = (_AT_ONCE, steps[place - 1][1])
    after = [(at - start, number) for at, number in steps[place:]]
    again = [(at - start + length, number) for at, number in steps[:place] if at < start]
    return [first, *after, *again]
