"""The job and the pools of a replay: prices, and capacity over time from traces."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from pulumi_holdfast.analysis.simulation.run import ENDLESS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_holdfast.analysis.replay.trace import Trace

_AT_ONCE = timedelta(0)

_Value = TypeVar("_Value", int, float)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A job: the duration of its training without evictions, its instances, and the cost of a disruption.

    `restart`: from the start of the last instance to the first new step, at every start; billed. `boot`: the start of an
    instance; billed. `grace`: the termination of pods on a move. `checkpoint_every`: the most work that an eviction loses;
    None if the notice is long enough for a checkpoint.

    Raises ValueError, naming the field, for an invalid value.
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
        """The duration without evictions, which is the unit of all costs."""
        return self.boot + self.restart + self.work


@dataclass(frozen=True, kw_only=True)
class Block:
    """When jobs can use a reservation, in the time of the traces, or after a job's start without traces.

    `ends` is the time by which they leave. Raises ValueError for an end before the beginning.
    """

    begins: timedelta
    ends: timedelta

    def __post_init__(self) -> None:
        if not _AT_ONCE <= self.begins < self.ends:
            raise ValueError(
                f"block: got {self.begins} to {self.ends}; allowed: an end after the beginning, neither below 0"
            )

    def after(self, start: timedelta, length: timedelta) -> tuple[timedelta, timedelta]:
        """The beginning and the end from a start in traces of that length, which continue from the beginning."""
        later = length if self.ends <= start else _AT_ONCE
        return self.begins - start + later, self.ends - start + later


@dataclass(frozen=True, kw_only=True)
class PoolMarket:
    """A pool, its price relative to on-demand, and its trace or its reserved block; neither: it always has capacity.

    The prices of a trace that has some count instead of `price`, relative to on-demand too. `data_per_start` is what the data of
    each start there costs, in on-demand hours of the whole job: of a pool in another region than the checkpoints.

    Raises ValueError for a price of 0 or less, for data that costs less than 0, and for both a trace and a block.
    """

    pool: str
    price: float
    trace: Trace | None = None
    block: Block | None = None
    data_per_start: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.data_per_start) and self.data_per_start >= 0):
            raise ValueError(f"data of {self.pool}: got {self.data_per_start:g}; allowed: 0 or more")
        if self.trace is not None and self.block is not None:
            raise ValueError(
                f"{self.pool}: got a trace and a block; allowed: one of the two, as reserved machines are not interrupted"
            )
        if not (math.isfinite(self.price) and self.price > 0):
            raise ValueError(f"price of {self.pool}: got {self.price:g}; allowed: more than 0")


@dataclass(frozen=True, kw_only=True)
class Market:
    """The pools, first tier first. All traces begin at the same time, and are cut to the length of the shortest.

    Raises ValueError without a pool, for a repeated one, and for a block that begins after the traces.
    """

    pools: tuple[PoolMarket, ...]

    def __post_init__(self) -> None:
        names = [each.pool for each in self.pools]
        twice = next((name for name in names if names.count(name) > 1), None)
        if not names or twice is not None:
            raise ValueError(
                f"pools: got {f'{twice} a second time' if twice else 'none'}; allowed: each once"
            )
        for each in self.pools:
            if each.block is not None and self.length is not None and each.block.begins >= self.length:
                raise ValueError(
                    f"block of {each.pool}: begins after {each.block.begins}; allowed: within the traces, {self.length}"
                )

    @property
    def length(self) -> timedelta | None:
        """The length of the shortest trace, None without a trace."""
        return min((each.trace.length for each in self.pools if each.trace), default=None)

    def from_start(self, start: timedelta, nodes: int) -> Mapping[str, Sequence[tuple[timedelta, int]]]:
        """Return the capacity of each pool over time for a gang of `nodes` that starts at `start` in the traces.

        At their end the traces continue from the beginning, so that every start covers all of them once. A pool that
        always has capacity has one step.
        """
        length = self.length or _AT_ONCE
        return {each.pool: _steps(each, start, nodes, length) for each in self.pools}

    def prices_from_start(self, start: timedelta) -> Mapping[str, Sequence[tuple[timedelta, float]]]:
        """Return the price of each pool over time from a start in the traces; one step without recorded prices."""
        length = self.length or _AT_ONCE
        return {
            each.pool: _rotated(each.trace.price_steps(length), start, length)
            if each.trace is not None and each.trace.prices
            else [(_AT_ONCE, each.price)]
            for each in self.pools
        }

    def blocks_from_start(self, start: timedelta) -> Mapping[str, tuple[timedelta, timedelta]]:
        """The beginning and the end of each reserved pool's block after a start in the traces."""
        length = self.length or _AT_ONCE
        return {each.pool: each.block.after(start, length) for each in self.pools if each.block}


def _steps(
    pool: PoolMarket, start: timedelta, nodes: int, length: timedelta
) -> Sequence[tuple[timedelta, int]]:
    if pool.trace is not None:
        return _rotated(pool.trace.steps(nodes, length), start, length)
    if pool.block is None:
        return [(_AT_ONCE, ENDLESS)]
    begins, ends = pool.block.after(start, length)
    before = [] if begins <= _AT_ONCE else [(_AT_ONCE, 0)]
    return [*before, (max(begins, _AT_ONCE), ENDLESS), (ends, 0)]


def _rotated(
    steps: Sequence[tuple[timedelta, _Value]], start: timedelta, length: timedelta
) -> list[tuple[timedelta, _Value]]:
    place = bisect_right(steps, start, key=lambda step: step[0])
    first = (_AT_ONCE, steps[place - 1][1])
    after = [(at - start, value) for at, value in steps[place:]]
    again = [(at - start + length, value) for at, value in steps[:place] if at < start]
    return [first, *after, *again]
