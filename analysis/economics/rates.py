"""When spot pays, from rates: evictions per hour, hours per eviction, prices."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Market:
    """What a pool's capacity costs and how long it lasts.

    `price` is what an hour costs where on-demand is 1; `evictions_per_hour` how often a running gang is interrupted;
    `hours_per_eviction` what an interruption adds: the restart, the wait for machines, the steps since the last
    checkpoint.

    Raises ValueError, naming the field, for a negative or infinite value, or a price of 0.
    """

    price: float
    evictions_per_hour: float = 0.0
    hours_per_eviction: float = 0.0

    def __post_init__(self) -> None:
        for field, value in (
            ("price", self.price),
            ("evictions_per_hour", self.evictions_per_hour),
            ("hours_per_eviction", self.hours_per_eviction),
        ):
            if not math.isfinite(value) or value < 0 or (field == "price" and value == 0):
                raise ValueError(
                    f"{field}: got {value}; allowed: {'more than 0' if field == 'price' else '0 or more'}"
                )

    @property
    def hours_per_useful_hour(self) -> float:
        """How long an hour of training takes here: each hour meets λ evictions, and each adds Δt."""
        return 1 + self.evictions_per_hour * self.hours_per_eviction

    @property
    def cost_per_useful_hour(self) -> float:
        """What an hour of training costs here, in on-demand hours, if interrupted hours are billed."""
        return self.price * self.hours_per_useful_hour

    @property
    def break_even_evictions_per_hour(self) -> float:
        """The rate above which on-demand is cheaper; infinite where an eviction adds nothing, 0 where spot costs more."""
        if self.price >= 1:
            return 0.0
        return math.inf if self.hours_per_eviction == 0 else (1 / self.price - 1) / self.hours_per_eviction

    @property
    def pays(self) -> bool:
        """Whether training here costs less than on on-demand."""
        return self.cost_per_useful_hour < 1
