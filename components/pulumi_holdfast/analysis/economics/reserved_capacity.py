"""When a reservation pays: it is paid for whether it is used or not, and its hours are not interrupted."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ReservedBlock:
    """Reserved machines for some time, and how much of it trains.

    `price` is what an hour costs where on-demand is 1, `hours` the length of the reservation, `used_hours` how many of them a job
    trains. `otherwise` is what an hour of training costs on the tiers below: 1 for on-demand, less where jobs get spot.

    Raises ValueError, naming the field, for a price or a length of 0 or less, and for more used hours than there are.
    """

    price: float
    hours: float
    used_hours: float
    otherwise: float = 1.0

    def __post_init__(self) -> None:
        for field, value in (("price", self.price), ("hours", self.hours), ("otherwise", self.otherwise)):
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{field}: got {value:g}; allowed: more than 0")
        if not 0 <= self.used_hours <= self.hours:
            raise ValueError(
                f"used_hours: got {self.used_hours:g}; allowed: 0 to {self.hours:g}, the hours reserved"
            )

    @property
    def cost(self) -> float:
        """The cost of the reservation, in on-demand hours."""
        return self.price * self.hours

    @property
    def cost_per_useful_hour(self) -> float:
        """The cost of an hour of training in it; infinite if none is used."""
        return math.inf if self.used_hours == 0 else self.cost / self.used_hours

    @property
    def break_even_hours(self) -> float:
        """How many hours must be used for it to cost as much as the same training elsewhere; may be more than there are."""
        return self.cost / self.otherwise

    @property
    def pays(self) -> bool:
        """Whether the training in it costs less than elsewhere."""
        return self.used_hours > self.break_even_hours


def reserved_report(block: ReservedBlock) -> str:
    """The cost of a reservation, and from how much use it pays."""
    share = block.break_even_hours / block.hours
    if share > 1:
        verdict = "never: it costs more than the same training elsewhere, however much of it is used"
    else:
        verdict = f"from {block.break_even_hours:.1f} h of use, {share:.0%} of the reservation"
    per_hour = (
        "nothing trains in it"
        if block.used_hours == 0
        else f"{block.cost_per_useful_hour:.2f} on-demand hours"
    )
    return "\n".join(
        [
            f"costs            {block.cost:.1f} on-demand hours, used or not",
            f"per hour used    {per_hour}, instead of {block.otherwise:.2f} elsewhere",
            f"pays             {verdict}",
        ]
    )
