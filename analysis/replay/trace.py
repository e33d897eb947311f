"""An availability trace: how many instances a pool could have had, at regular times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Trace:
    """How many instances were to be had: `data[i]` from `i * gap` until `(i + 1) * gap`."""

    gap: timedelta
    data: tuple[int, ...]

    @property
    def length(self) -> timedelta:
        """The time it covers."""
        return self.gap * len(self.data)

    @property
    def most(self) -> int:
        """The most instances that it ever has."""
        return max(self.data)

    @cached_property
    def changes(self) -> tuple[tuple[int, int], ...]:
        """At which ticks the number changes, the first included, and to what."""
        ticks = range(len(self.data))
        return tuple((at, self.data[at]) for at in ticks if at == 0 or self.data[at] != self.data[at - 1])

    def steps(self, nodes: int, length: timedelta) -> list[tuple[timedelta, int]]:
        """Return when the number changes within a length, and to what; more than so many nodes are nothing more."""
        steps: list[tuple[timedelta, int]] = []
        for tick, number in self.changes:
            at, room = self.gap * tick, min(number, nodes)
            if at < length and not (steps and steps[-1][1] == room):
                steps.append((at, room))
        return steps


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What a gang of some size meets in a trace.

    `share`: of the time in which it has all of its instances. `evictions_per_hour`: how often an hour with them is
    interrupted. `mean_wait_hours`, `longest_wait_hours`: until it has them again.
    """

    share: float
    evictions_per_hour: float
    mean_wait_hours: float
    longest_wait_hours: float


def rates(trace: Trace, nodes: int) -> Rates:
    """Return what a gang of so many nodes meets in a trace."""
    stretches = list(_stretches(trace, nodes))
    there = [hours for fits, hours in stretches if fits]
    gone = [hours for fits, hours in stretches if not fits]
    evictions = sum(1 for place, (fits, _) in enumerate(stretches) if place and not fits)
    return Rates(
        share=sum(there) / (trace.length / _HOUR),
        evictions_per_hour=evictions / sum(there) if there else 0.0,
        mean_wait_hours=sum(gone) / len(gone) if gone else 0.0,
        longest_wait_hours=max(gone, default=0.0),
    )


def _stretches(trace: Trace, nodes: int) -> Iterator[tuple[bool, float]]:
    for fits, ticks in groupby(number >= nodes for number in trace.data):
        yield fits, sum(1 for _ in ticks) * trace.gap / _HOUR
