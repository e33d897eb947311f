"""When spot pays, from rates: evictions per hour, hours per eviction, prices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from pulumi_holdfast.analysis.economics.cost_model import LINEAR_UP_TO


@dataclass(frozen=True, kw_only=True)
class PoolRates:
    """The price of a pool's capacity and its evictions.

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
        """The duration of an hour of training here: each hour has λ evictions, and each adds Δt."""
        return 1 + self.evictions_per_hour * self.hours_per_eviction

    @property
    def cost_per_useful_hour(self) -> float:
        """The cost of an hour of training here, in on-demand hours, if interrupted hours are billed."""
        return self.price * self.hours_per_useful_hour

    @property
    def is_linear(self) -> bool:
        """Whether the model holds for these rates: evictions add at most LINEAR_UP_TO of the time."""
        return self.hours_per_useful_hour <= 1 + LINEAR_UP_TO

    @property
    def break_even_evictions_per_hour(self) -> float:
        """The rate above which on-demand is cheaper; infinite if an eviction adds no time, 0 if spot costs more."""
        if self.price >= 1:
            return 0.0
        return math.inf if self.hours_per_eviction == 0 else (1 / self.price - 1) / self.hours_per_eviction

    @property
    def pays(self) -> bool:
        """Whether training here costs less than on on-demand."""
        return self.cost_per_useful_hour < 1


@dataclass(frozen=True, kw_only=True)
class PricedTier:
    """One tier of a ladder: its pool's name and its rates."""

    pool: str
    rates: PoolRates


@dataclass(frozen=True, kw_only=True)
class TierComparison:
    """A tier compared with the cheapest tier below it.

    `evictions_left` is how many more evictions per hour it can have before the cheapest tier below is cheaper; negative
    if that one is cheaper already.
    """

    tier: PricedTier
    cheapest_below: PricedTier | None
    evictions_left: float

    @property
    def is_worth_it(self) -> bool:
        """Whether training is cheaper here than on every tier below."""
        return self.cheapest_below is None or self.evictions_left > 0


def compare_tiers(ladder: Sequence[PricedTier]) -> tuple[TierComparison, ...]:
    """Compare each tier with the cheapest one below it; the last has none.

    A tier is worth it up to the rate at which an hour of training costs the same on both: `λ = (c / p - 1) / Δt`.
    """
    return tuple(_verdict(tier, ladder[place + 1 :]) for place, tier in enumerate(ladder))


def _verdict(tier: PricedTier, below: Sequence[PricedTier]) -> TierComparison:
    if not below:
        return TierComparison(tier=tier, cheapest_below=None, evictions_left=float("inf"))
    cheapest = min(below, key=lambda other: other.rates.cost_per_useful_hour)
    rates, goal = tier.rates, cheapest.rates.cost_per_useful_hour
    if rates.hours_per_eviction == 0:
        left = float("inf") if rates.price < goal else float("-inf")
    else:
        left = (goal / rates.price - 1) / rates.hours_per_eviction - rates.evictions_per_hour
    return TierComparison(tier=tier, cheapest_below=cheapest, evictions_left=left)


#: The `maxFailures` of the stacks in `stacks/`.
FEW_FAILURES = 5

#: The longest `failureWindow`, in hours.
_LONGEST_WINDOW = 720.0

#: The share of jobs on a pool with its usual rate of evictions that must not be moved by chance.
CONFIDENCE = 0.95

#: From this mean the normal distribution is within one of the Poisson quantile, and summing would take long.
_NORMAL_FROM = 1e5


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A `maxFailures`, and its bounds.

    `by_luck`, `by_money` and `by_time` are the three bounds, infinite if there is none. `reason` names the deciding one in
    a sentence. `window_hours` is the longest `failureWindow` in which FEW_FAILURES are no fewer than bad luck brings, None if
    `max_failures` is not larger. `linear_up_to` is how many evictions the model of costs is valid for.
    """

    max_failures: int
    by_luck: int
    by_money: float
    by_time: float
    reason: str
    window_hours: float | None = None
    linear_up_to: float = math.inf


def advise(rates: PoolRates, *, hours: float, slack_hours: float | None = None) -> Advice:
    """Return the `maxFailures` for a job of `hours` on a spot pool.

    `slack_hours` is how much later the job may end than without failures, None for no limit. Raises ValueError for hours
    of 0 or less and a negative slack.
    """
    if not hours > 0:
        raise ValueError(f"hours: got {hours}; allowed: more than 0")
    if slack_hours is not None and slack_hours < 0:
        raise ValueError(f"slack_hours: got {slack_hours}; allowed: 0 or more")
    by_luck = poisson_quantile(rates.evictions_per_hour * hours, CONFIDENCE)
    by_money = rates.break_even_evictions_per_hour * hours
    by_time = math.inf if slack_hours is None else restarts_within(slack_hours, rates.hours_per_eviction)
    # The move is made when the count is reached: to stay through n evictions takes a maxFailures of n + 1.
    wanted, cap = by_luck + 1, min(by_money, by_time)
    max_failures = int(min(wanted, cap)) if rates.pays else 0
    each = rates.hours_per_eviction
    return Advice(
        max_failures=max_failures,
        by_luck=by_luck,
        by_money=by_money,
        by_time=by_time,
        reason=_reason(rates, wanted, by_money, by_time),
        window_hours=longest_window(rates.evictions_per_hour) if max_failures > FEW_FAILURES else None,
        linear_up_to=math.inf if each == 0 else LINEAR_UP_TO * hours / each,
    )


def longest_window(evictions_per_hour: float) -> float:
    """The longest time, in hours, in which fewer than FEW_FAILURES evictions come with CONFIDENCE; by bisection."""
    low, high = 0.0, float(FEW_FAILURES)
    for _ in range(50):
        mean = (low + high) / 2
        low, high = (mean, high) if poisson_quantile(mean, CONFIDENCE) < FEW_FAILURES else (low, mean)
    return min(low / evictions_per_hour, _LONGEST_WINDOW)


def restarts_within(slack_hours: float, hours_per_eviction: float) -> float:
    """The number of restarts that fit into the slack; infinite if one takes no time."""
    restarts = math.inf if hours_per_eviction == 0 else slack_hours / hours_per_eviction
    return restarts if math.isinf(restarts) else math.floor(restarts)


def poisson_quantile(mean: float, confidence: float) -> int:
    """The smallest n such that a count with this mean is n or less with at least this probability."""
    if mean == 0:
        return 0
    if mean > _NORMAL_FROM:
        return math.ceil(NormalDist(mean, math.sqrt(mean)).inv_cdf(confidence))
    count, total = 0, 0.0
    while total < confidence:
        # In logarithms: exp(-mean) is 0 from a mean of 746, and the sum would never end.
        total += math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))
        count += 1
    return count - 1


def _reason(rates: PoolRates, wanted: int, by_money: float, by_time: float) -> str:
    if not rates.pays:
        return (
            f"an hour of training costs {rates.cost_per_useful_hour:.2f} on-demand hours here: leave this pool out, or "
            "give it 0, so that the first eviction moves the job on"
        )
    if by_time < min(wanted, by_money):
        return f"the deadline leaves time for {by_time:.0f} restarts, fewer than bad luck alone may bring"
    if by_money < wanted:
        return f"after {by_money:.0f} evictions the pool has cost what on-demand would have"
    return f"{CONFIDENCE:.0%} of jobs see fewer than {wanted} evictions while the pool behaves as usual"
