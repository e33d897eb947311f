"""The cheapest schedule in whole hours, found by trying all of them: what the bound with hindsight is held against."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

IDLE = -1


def best_on_a_grid(offers: Sequence[tuple[float, Sequence[bool]]], *, work: int, restart: int) -> float:
    """Return the least cost of so many hours of work, each pool by its price and in which hours it has room."""
    # Pool, hours of restart that are left, hours of work done → cost.
    reached: dict[tuple[int, int, int], float] = {(IDLE, 0, 0): 0.0}
    for hour in range(len(offers[0][1])):
        then: dict[tuple[int, int, int], float] = {}
        for (pool, left, done), cost in reached.items():
            steps = [((IDLE, 0, done), cost)]
            for other, (price, room) in enumerate(offers):
                if room[hour] and done < work:
                    wait = left if other == pool else restart
                    steps.append(((other, max(0, wait - 1), done + (wait == 0)), cost + price))
            for state, total in steps:
                then[state] = min(total, then.get(state, math.inf))
        reached = then
    return min((cost for (_, _, done), cost in reached.items() if done >= work), default=math.inf)
