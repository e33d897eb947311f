"""The cost of a job that starts on spot and ends on-demand, as a range.

A job takes T hours on on-demand; a share α of it runs on spot, and each of M failures adds Δt hours. Costs are in
on-demand hours: multiply by the on-demand price of the job's machines for money.

The source of the model writes two equations for the same job. One spreads the added hours over spot and on-demand as
the work is spread, `(T + MΔt)(1 - (1 - s)α)`; the other bills all of them on-demand, `αTs + (1 - α)T + MΔt`. The truth
lies between: hours lost on spot are paid at the spot price, and a job that has just moved repeats work on-demand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

#: The spot price that the source assumes: 90 % off.
SOURCE_SPOT_PRICE = 0.1

#: The share of a job's hours that evictions may add while the model is right within 10 %: it counts no evictions in the added hours.
LINEAR_UP_TO: Final = 0.5
BEYOND_LINEAR: Final = "beyond the linear model, which counts no evictions in the hours that evictions add"


@dataclass(frozen=True, kw_only=True)
class Between:
    """A value between the results of the two equations: `spread` shares the added hours, `on_demand` does not.

    For a cost `spread` is the lower bound; for the time that may be added to a job it is the upper one.
    """

    spread: float
    on_demand: float

    def __str__(self) -> str:
        low, high = sorted((self.spread, self.on_demand))
        return f"{low:.2f}" if math.isclose(low, high) else f"{low:.2f} to {high:.2f}"


@dataclass(frozen=True, kw_only=True)
class MixedJob:
    """A job that runs partly on spot.

    `hours` is its duration without failures (T, more than 0), `spot_share` the share on spot (α, 0 to 1), `failures` their
    number (M, 0 or more), `hours_per_failure` the hours that each adds (Δt, 0 or more), `spot_price` the price of spot
    relative to on-demand (more than 0).

    Raises ValueError, naming the field, for a value outside these bounds.
    """

    hours: float
    spot_share: float
    failures: float
    hours_per_failure: float
    spot_price: float = SOURCE_SPOT_PRICE

    def __post_init__(self) -> None:
        _check("hours", self.hours, self.hours > 0, "more than 0")
        _check("spot_share", self.spot_share, 0 <= self.spot_share <= 1, "0 to 1")
        _check("failures", self.failures, self.failures >= 0, "0 or more")
        _check("hours_per_failure", self.hours_per_failure, self.hours_per_failure >= 0, "0 or more")
        _check("spot_price", self.spot_price, self.spot_price > 0, "more than 0, with on-demand as 1")

    @property
    def added_hours(self) -> float:
        """The hours that the failures add: MΔt."""
        return self.failures * self.hours_per_failure

    @property
    def total_hours(self) -> float:
        """The duration of the job with its failures: T + MΔt."""
        return self.hours + self.added_hours

    @property
    def cost(self) -> Between:
        """The cost in on-demand hours."""
        blended = 1 - (1 - self.spot_price) * self.spot_share
        return Between(spread=self.total_hours * blended, on_demand=self.hours * blended + self.added_hours)

    @property
    def saving(self) -> Between:
        """The saved share of the on-demand cost; negative if spot costs more."""
        cost = self.cost
        return Between(spread=1 - cost.spread / self.hours, on_demand=1 - cost.on_demand / self.hours)

    @property
    def failures_to_break_even(self) -> Between:
        """The number of failures at which the job costs as much as on on-demand; infinite if a failure adds no time."""
        tolerated = tolerated_extension(self.spot_share, self.spot_price)
        if self.hours_per_failure == 0:
            return Between(spread=math.inf, on_demand=math.inf)
        each = self.hours / self.hours_per_failure
        return Between(spread=tolerated.spread * each, on_demand=tolerated.on_demand * each)


def tolerated_extension(spot_share: float, spot_price: float = SOURCE_SPOT_PRICE) -> Between:
    """How much longer than on-demand a job may take before it costs more, as a share of its hours without failures.

    0.56 means 56 % longer. Where all of a job is on spot this is `1 / s - 1` with the hours spread, and `1 - s` with
    them billed on-demand.
    """
    discounted = (1 - spot_price) * spot_share
    return Between(spread=1 / (1 - discounted) - 1, on_demand=discounted)


def _check(field: str, value: float, is_allowed: bool, allowed: str) -> None:
    if not (is_allowed and math.isfinite(value)):
        raise ValueError(f"{field}: got {value}; allowed: {allowed}")


#: Five hours, five interruptions that add an hour together, 60 % on spot.
WORKED_EXAMPLE: Final = MixedJob(hours=5, spot_share=0.6, failures=5, hours_per_failure=0.2)

#: Share on spot → how much longer the job may take, as the source prints it.
PRINTED: Final = {0.3: 0.36, 0.4: 0.56, 0.5: 0.81, 0.6: 2.17}

#: The source cuts off its digits: 1.369 became 36 %, and 1.818 became 81 %.
_TRUNCATION: Final = 0.01


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table: the printed value, and the range of the equations."""

    spot_share: float
    printed: float
    tolerated: Between

    @property
    def is_right(self) -> bool:
        """Whether the printed value is that of the spread equation, apart from truncated digits."""
        return 0 <= self.tolerated.spread - self.printed < _TRUNCATION

    @property
    def remark(self) -> str:
        """The error in the printed value, empty if there is none."""
        if self.is_right:
            return ""
        total = 1 + self.tolerated.spread
        if 0 <= total - self.printed < _TRUNCATION:
            return f"printed is the total, {total:.0%} of the undisturbed time, not what is added to it"
        return f"the equation gives {self.tolerated.spread:.0%}"


def table() -> tuple[Row, ...]:
    """The table's rows, in the source's order."""
    return tuple(
        Row(spot_share=share, printed=printed, tolerated=tolerated_extension(share))
        for share, printed in PRINTED.items()
    )
