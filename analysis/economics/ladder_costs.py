"""What a ladder's tiers cost beside each other, and which of them are worth a rung."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.analysis.economics.rates import Market


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One tier of a ladder: its pool's name and its market."""

    pool: str
    market: Market


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is to be said of a rung.

    `evictions_left` is how many more evictions per hour it would bear before the cheapest rung below it were the
    better place; negative where that is so already.
    """

    rung: Rung
    cheapest_below: Rung | None
    evictions_left: float

    @property
    def is_worth_it(self) -> bool:
        """Whether a job is better here than on every rung below."""
        return self.cheapest_below is None or self.evictions_left > 0


def judge(ladder: Sequence[Rung]) -> tuple[Verdict, ...]:
    """Hold each rung against the cheapest one below it, the last against nothing.

    A rung pays up to the rate at which an hour of training costs as much as it does there: `λ = (c / p - 1) / Δt`.
    """
    return tuple(_verdict(rung, ladder[place + 1 :]) for place, rung in enumerate(ladder))


def _verdict(rung: Rung, below: Sequence[Rung]) -> Verdict:
    if not below:
        return Verdict(rung=rung, cheapest_below=None, evictions_left=float("inf"))
    cheapest = min(below, key=lambda other: other.market.cost_per_useful_hour)
    market, goal = rung.market, cheapest.market.cost_per_useful_hour
    if market.hours_per_eviction == 0:
        left = float("inf") if market.price < goal else float("-inf")
    else:
        left = (goal / market.price - 1) / market.hours_per_eviction - market.evictions_per_hour
    return Verdict(rung=rung, cheapest_below=cheapest, evictions_left=left)
