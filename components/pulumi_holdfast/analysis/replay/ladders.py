"""The ladders to compare: one from a FallbackPolicy, or one for each combination of the given numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import product
from typing import TYPE_CHECKING, Final, cast

import yaml

from pulumi_holdfast.ladder.fallback_policy import parse_policy
from pulumi_holdfast.ladder.ladder import DEFAULT_HOLD_TIMEOUT, UNLIMITED, NoPolicy, Policy, Tier
from pulumi_holdfast.ladder.quantities import format_duration
from pulumi_holdfast.ladder.windows import ALWAYS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pulumi_holdfast.analysis.replay.market import Market
    from pulumi_holdfast.ladder.json import Json

# A table that does not fit on a screen is hard to read, and each row takes time.
MOST_LADDERS: Final = 64


@dataclass(frozen=True, kw_only=True)
class NamedPolicy:
    """A policy and the name of its row."""

    name: str
    policy: Policy


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """The numbers of a ladder, the first three with all values to try. None: no limit, or never.

    The defaults are those of a ladder without failback: five failures, 15 minutes. `max_price`: of every tier above the last,
    relative to on-demand.
    """

    max_failures: Sequence[int] = (5,)
    procurement_timeout: Sequence[timedelta | None] = (timedelta(minutes=15),)
    return_after: Sequence[timedelta | None] = (None,)
    hold_timeout: timedelta = DEFAULT_HOLD_TIMEOUT
    deadline: timedelta | None = None
    max_price: float | None = None


def ladders(market: Market, numbers: Numbers) -> tuple[NamedPolicy, ...]:
    """Return a ladder over the market's pools for each combination.

    Raises ValueError for too many combinations, and for a tier without maxFailures and procurementTimeout.
    """
    combinations = list(product(numbers.max_failures, numbers.procurement_timeout, numbers.return_after))
    if len(combinations) > MOST_LADDERS:
        raise ValueError(f"{len(combinations)} ladders to compare; allowed: {MOST_LADDERS} at most")
    return tuple(_ladder(market, numbers, *each) for each in combinations)


def stay(pool: str) -> NamedPolicy:
    """Return the policy of staying on one pool."""
    return NamedPolicy(
        name=f"stay on {pool}", policy=Policy(tiers=(Tier(pool=pool, max_failures=UNLIMITED),))
    )


def read_ladder(path: Path, market: Market, on_demand_price: float | None = None) -> NamedPolicy:
    """Read a FallbackPolicy, as YAML or JSON, whose pools are those of the market.

    `on_demand_price`: in the currency of its `maxPrice`, which becomes relative to it.

    Raises ValueError for anything else, OSError for a file that cannot be read.
    """
    try:
        document = cast("object", yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from error
    policy = parse_policy(cast("Json", document) if isinstance(document, dict) else None)
    if not isinstance(policy, NoPolicy):
        return _fitting(policy, path, market, on_demand_price)
    problems = policy.problems or ("no FallbackPolicy; allowed: an object with spec.tiers",)
    raise ValueError(f"{path}: {'; '.join(problems)}")


def _fitting(policy: Policy, path: Path, market: Market, on_demand_price: float | None) -> NamedPolicy:
    tiers = [tier.name for tier in policy.tiers]
    pools = [each.pool for each in market.pools]
    if set(tiers) != set(pools):
        raise ValueError(
            f"{path}: its tiers are {', '.join(tiers)}, the pools that were given {', '.join(pools)}; "
            "allowed: the same ones, each with its price"
        )
    blocks = {each.pool for each in market.pools if each.block}
    for tier in policy.tiers:
        if tier.facts.window != ALWAYS and tier.name not in blocks:
            raise ValueError(
                f"{path}: {tier.name} is reserved for some time, which a replay does not read from dates; write the pool as "
                f"{tier.name}:PRICE:BEGIN..END, such as {tier.name}:0.7:6h..54h"
            )
    return NamedPolicy(name=path.name, policy=_with_relative_limits(policy, path, on_demand_price))


def _with_relative_limits(policy: Policy, path: Path, on_demand_price: float | None) -> Policy:
    """Express each `maxPrice` relative to on-demand, as the prices of a replay are."""
    if all(tier.max_price is None for tier in policy.tiers):
        return policy
    if on_demand_price is None:
        raise ValueError(
            f"{path}: maxPrice has no prices to be compared with; set --on-demand-price, and give the tier a trace with prices"
        )
    tiers = (
        replace(tier, max_price=None if tier.max_price is None else tier.max_price / on_demand_price)
        for tier in policy.tiers
    )
    return replace(policy, tiers=tuple(tiers))


def _ladder(
    market: Market,
    numbers: Numbers,
    max_failures: int,
    procurement_timeout: timedelta | None,
    return_after: timedelta | None,
) -> NamedPolicy:
    *above, last = (each.pool for each in market.pools)
    if above and max_failures == UNLIMITED and procurement_timeout is None:
        raise ValueError(
            "a tier without maxFailures and without procurementTimeout is never left: give one of them or both"
        )
    upper = [
        Tier(
            pool=pool,
            max_failures=max_failures,
            procurement_timeout=procurement_timeout,
            max_price=numbers.max_price,
        )
        for pool in above
    ]
    return NamedPolicy(
        name=_name(max_failures, procurement_timeout, return_after),
        policy=Policy(
            tiers=(*upper, Tier(pool=last)),
            return_after=return_after,
            hold_timeout=numbers.hold_timeout,
            deadline=numbers.deadline,
        ),
    )


def _name(max_failures: int, procurement_timeout: timedelta | None, return_after: timedelta | None) -> str:
    count = f"{max_failures} failure" if max_failures == 1 else f"{max_failures} failures"
    failures = "any failures" if max_failures == UNLIMITED else count
    wait = "any wait" if procurement_timeout is None else format_duration(procurement_timeout)
    back = "one way" if return_after is None else f"back after {format_duration(return_after)}"
    return f"{failures}, {wait}, {back}"
