"""What `maxFailures` of a spot tier should be, from its eviction rate, restart cost, price and the time there is.

Three bounds. *Luck*: a job must not leave a pool that is behaving as usual, so the number is at least what 95 of 100
jobs stay below (a Poisson quantile). *Money*: beyond the break-even, the tier has cost more than on-demand would have.
*Time*: a deadline leaves room for so many restarts and no more. Luck asks for a number, money and time cap it.

With a rate that were known for certain and constant there would be nothing to count: spot pays for ever or not at all.
`maxFailures` is how a job finds out that the rate is not what was thought.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.analysis.economics.rates import Market

#: Of a hundred jobs on a pool that behaves as usual, how many may not be moved by mere bad luck.
CONFIDENCE = 0.95

#: From this mean the normal distribution is within one of the Poisson quantile, and summing would take long.
_NORMAL_FROM = 1e5


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A `maxFailures`, and what bounds it.

    `by_luck`, `by_money` and `by_time` are the three bounds; infinite where there is none. `reason` says which one
    decided, in a sentence.
    """

    max_failures: int
    by_luck: int
    by_money: float
    by_time: float
    reason: str


def advise(market: Market, *, hours: float, slack_hours: float | None = None) -> Advice:
    """Return the `maxFailures` for a job of `hours` on a spot pool.

    `slack_hours` is how much later than undisturbed the job may end, None where nobody waits for it. Raises ValueError
    for hours of 0 or less and a negative slack.
    """
    if not hours > 0:
        raise ValueError(f"hours: got {hours}; allowed: more than 0")
    if slack_hours is not None and slack_hours < 0:
        raise ValueError(f"slack_hours: got {slack_hours}; allowed: 0 or more")
    by_luck = poisson_quantile(market.evictions_per_hour * hours, CONFIDENCE)
    by_money = market.break_even_evictions_per_hour * hours
    by_time = math.inf if slack_hours is None else restarts_within(slack_hours, market.hours_per_eviction)
    # The move is made when the count is reached: to stay through n evictions takes a maxFailures of n + 1.
    wanted, cap = by_luck + 1, min(by_money, by_time)
    return Advice(
        max_failures=int(min(wanted, cap)) if market.pays else 0,
        by_luck=by_luck,
        by_money=by_money,
        by_time=by_time,
        reason=_reason(market, wanted, by_money, by_time),
    )


def restarts_within(slack_hours: float, hours_per_eviction: float) -> float:
    """How many restarts fit into the slack; infinite where one takes no time."""
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


def _reason(market: Market, wanted: int, by_money: float, by_time: float) -> str:
    if not market.pays:
        return (
            f"an hour of training costs {market.cost_per_useful_hour:.2f} on-demand hours here: leave this pool out, or "
            "give it 0, so that the first eviction moves the job on"
        )
    if by_time < min(wanted, by_money):
        return f"the deadline leaves time for {by_time:.0f} restarts, fewer than bad luck alone may bring"
    if by_money < wanted:
        return f"after {by_money:.0f} evictions the pool has cost what on-demand would have"
    return f"{CONFIDENCE:.0%} of jobs see fewer than {wanted} evictions while the pool behaves as usual"
