"""How many nodes each pool can give at a time."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

# More than any job asks for: a pool that never says no.
ENDLESS: Final = 1_000_000


class Availability(Protocol):
    """What a market or a test says of capacity; piecewise constant."""

    def nodes(self, pool: str, at: datetime) -> int:
        """How many nodes the pool can have in all."""
        ...

    def next_change(self, at: datetime) -> datetime | None:
        """When any pool's number changes next after a time; None for never."""
        ...


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Availability as steps: for each pool, times in order, and from each on how many nodes. None before the first.

    A pool that is not named is endless.
    """

    pools: Mapping[str, Sequence[tuple[datetime, int]]]

    def nodes(self, pool: str, at: datetime) -> int:
        """How many nodes the pool can have in all."""
        steps = self.pools.get(pool)
        if steps is None:
            return ENDLESS
        place = bisect_right(steps, at, key=lambda step: step[0])
        return steps[place - 1][1] if place else 0

    def next_change(self, at: datetime) -> datetime | None:
        """When any pool's number changes next after a time; None for never."""
        ahead: list[datetime] = []
        for steps in self.pools.values():
            place = bisect_right(steps, at, key=lambda step: step[0])
            if place < len(steps):
                ahead.append(steps[place][0])
        return min(ahead, default=None)
