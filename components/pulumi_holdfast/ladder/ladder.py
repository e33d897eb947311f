"""Fallback ladders: the tiers that a job moves down, and the validation of a ladder."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.quantities import format_duration

#: `maxFailures` of a tier that no number of failures ends.
UNLIMITED: Final = -1

#: `returnAfter` of a ladder whose jobs never return to a better tier.
NEVER: Final = timedelta(0)

#: The largest `maxFailures` beside a `failureWindow`: the time of each failure is recorded in the job.
MOST_TIMED_FAILURES: Final = 100

#: The largest `maxFailures`: a larger number is a mistake for UNLIMITED.
MOST_FAILURES: Final = 10_000

#: The most tiers of a ladder: the API server's checks read all of them within its limit of cost.
MOST_TIERS: Final = 16

#: The largest `price` of a node per hour: a larger one is a mistake.
HIGHEST_PRICE: Final = 100_000

#: A machine's boot, the image, the training framework, and the work since the last checkpoint.
DEFAULT_RESTART_COST: Final = timedelta(minutes=15)

#: The syntax of `max-cost` of a job: a decimal number. The API server's rules and Python read it alike.
MAX_COST_PATTERN: Final = r"^[0-9]{1,9}(\.[0-9]{1,6})?$"

#: What a job does when its `max-cost` is spent: it waits on the tiers that are not on-demand, or is given up.
WAIT_AFTER_MAX_COST: Final = "wait"
GIVE_UP_AFTER_MAX_COST: Final = "give-up"
AFTER_MAX_COST_VALUES: Final = (WAIT_AFTER_MAX_COST, GIVE_UP_AFTER_MAX_COST)

#: Which tiers need a time limit, and the fix: in the errors of the configuration, of the policy pack and of the API server.
NEEDS_TIMEOUT: Final = (
    "every tier that may be spot or reserved, except the last, needs a procurementTimeout: maxFailures counts the failures of "
    "pods that run, and without capacity none run, so the job waits there indefinitely"
)
SET_TIMEOUT: Final = "set procurementTimeout, such as 20m, on the tier"
#: The same, at the start of a sentence.
SET_TIMEOUT_FIX: Final = f"{SET_TIMEOUT[0].upper()}{SET_TIMEOUT[1:]}"
#: The least `giveUpAfter`, and why: in the errors of the configuration, of the policy pack and of the API server. Karpenter
#: (v1.14.1, its liveness controller) and the cluster autoscalers (`--max-node-provision-time`) wait this long for a node.
LEAST_GIVE_UP_AFTER: Final = timedelta(minutes=15)
GIVES_UP_TOO_SOON: Final = "giveUpAfter is 15m or more: a node of the last tier may take so long to start, and the controller would give up jobs that are about to run"
SET_GIVE_UP_AFTER: Final = "set giveUpAfter to 15m or more, such as 24h, or remove it"
ELSEWHERE_NEEDS_TIMEOUT: Final = "a tier in another cluster needs a procurementTimeout: while that cluster does not answer, nothing else moves a job on"
ELSEWHERE_BETWEEN: Final = "another cluster on tiers between the first and the last"


def parse_max_cost(text: str) -> float | None:
    """Parse the `max-cost` of a job; None for anything but a number above 0."""
    return float(text) or None if re.fullmatch(MAX_COST_PATTERN, text, re.ASCII) else None


class Failures(StrEnum):
    """Which failures count towards `maxFailures`."""

    ANY = "any"
    EVICTIONS = "evictions"


@dataclass(frozen=True, kw_only=True)
class Tier:
    """One tier: a pool, how many failures move a job on, and how long it waits for capacity.

    `max_failures` is UNLIMITED or None if failures never move a job on; `procurement_timeout` is None if it waits without
    limit. `price`: what a node costs per hour, in any currency; None if it is not declared. `max_price`: while a node costs
    more, the tier has no capacity; None for no limit. `cluster` is the other cluster that has the pool, empty for the ladder's own.
    """

    pool: str
    cluster: str = ""
    max_failures: int | None = None
    procurement_timeout: timedelta | None = None
    price: float | None = None
    max_price: float | None = None

    def is_left_for_certain(self, *, is_on_demand: bool) -> bool:
        """Whether a job moves on from this tier: unless it is on-demand, only `procurementTimeout` does for certain."""
        counts = self.max_failures is not None and self.max_failures != UNLIMITED
        return self.procurement_timeout is not None or (counts and is_on_demand)


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """An ordered list of tiers, best first, and how jobs move on them. None: the controller's default.

    `outage_window`: losses within this time count as one failure. On the last tier the controller gives a job up after
    `application_failures` of its own program (UNLIMITED: never), or after it has waited for capacity for `give_up_after`.
    `return_after` on a tier, it tries a better one, if capacity comes within `hold_timeout`; NEVER: it stays. Failures that are
    older than `failure_window` do not count any more; None: all of a tier visit count. From `deadline`
    after its creation, a failure moves a job straight to the last tier, and it does not return. A Warning event is emitted
    for pods that are placed but do not start within `start_timeout`. `restart_cost`: the longest time from the loss of a
    job's machines until it has its earlier progress again.
    """

    tiers: tuple[Tier, ...]
    failures: Failures | None = None
    outage_window: timedelta | None = None
    give_up_after: timedelta | None = None
    application_failures: int | None = None
    failure_window: timedelta | None = None
    return_after: timedelta | None = None
    hold_timeout: timedelta | None = None
    start_timeout: timedelta | None = None
    deadline: timedelta | None = None
    restart_cost: timedelta | None = None


def ladder_problems(ladder: Ladder, pools: Sequence[Pool], at: str) -> Iterator[Problem]:
    """Validate the tiers of a ladder; `at` is the path of their list."""
    return tier_problems(
        dict(enumerate(ladder.tiers)), len(ladder.tiers), {pool.name: pool for pool in pools}, at
    )


def tier_problems(
    tiers: Mapping[int, Tier],
    count: int,
    pools: Mapping[str, Pool],
    at: str,
    *,
    may_exist: Callable[[str], bool] = lambda _: False,
) -> Iterator[Problem]:
    """The same for a ladder of `count` tiers, of which only the given ones could be parsed.

    `may_exist` returns whether a name that is not in `pools` may belong to a pool that could not be parsed: then it is not
    reported. All problems of a configuration are reported at once, and none of them twice.
    """
    if count == 0:
        yield Problem(
            field=at,
            value="an empty ladder",
            allowed="one tier or more, the last one on-demand",
            fix=f"Add the pool to run on, such as `- {{pool: {_on_demand_example(pools)}}}`.",
        )
    yield from order_problems(tiers, count, at)
    yield from _above_max_price(tiers, at)
    for index, tier in tiers.items():
        if tier.cluster:
            if index not in {0, count - 1}:
                yield from _elsewhere(tier, f"{at}[{index}]")
            continue
        pool = pools.get(tier.pool)
        if pool is None:
            if not may_exist(tier.pool):
                yield _unknown_pool(tier, pools, f"{at}[{index}].pool")
        elif index < count - 1:
            yield from _cannot_be_left(tier, pool, f"{at}[{index}]")
        else:
            yield from _last_tier(tier, pool, pools, f"{at}[{index}]")
    yield from _mixed_machines(tiers, pools, at)


def order_problems(tiers: Mapping[int, Tier], count: int, at: str) -> Iterator[Problem]:
    """Validate what needs no pools: each is there once, and the first and the last tier are in the ladder's own cluster."""
    first: dict[tuple[str, str], int] = {}
    for index, tier in tiers.items():
        if first.setdefault((tier.cluster, tier.pool), index) != index:
            yield Problem(
                field=f"{at}[{index}].pool",
                value=f'"{tier.pool}" a second time',
                allowed="each pool once in a ladder",
                fix=f"Remove this tier, or raise maxFailures of tier [{first[tier.cluster, tier.pool]}].",
            )
        elif tier.cluster and index in {0, count - 1}:
            yield Problem(
                field=f"{at}[{index}].cluster",
                value=f'"{tier.cluster}" on the {"last" if index else "first"} tier',
                allowed=ELSEWHERE_BETWEEN,
                fix="Remove cluster, or move the tier between two tiers of the ladder's own cluster.",
            )


def _elsewhere(tier: Tier, field: str) -> Iterator[Problem]:
    """Validate a tier in another cluster, whose pools are not known here."""
    if tier.procurement_timeout is None:
        yield Problem(
            field=field,
            value=f'the tier "{tier.pool}" of cluster "{tier.cluster}" without procurementTimeout',
            allowed=ELSEWHERE_NEEDS_TIMEOUT,
            fix=f"{SET_TIMEOUT_FIX}.",
        )


def _above_max_price(tiers: Mapping[int, Tier], at: str) -> Iterator[Problem]:
    for index, tier in tiers.items():
        if tier.price is not None and tier.max_price is not None and tier.price > tier.max_price:
            yield Problem(
                field=f"{at}[{index}].maxPrice",
                value=f"{tier.max_price:g}, below price, {tier.price:g}",
                allowed="the tier's price or more, because a tier whose nodes cost more than its maxPrice has no capacity",
                fix="Raise maxPrice, or correct price.",
            )


def _unknown_pool(tier: Tier, pools: Mapping[str, Pool], field: str) -> Problem:
    close = get_close_matches(tier.pool, pools, n=1)
    return Problem(
        field=field,
        value=f'"{tier.pool}"',
        allowed=f"the pools of this stack: {', '.join(pools) or 'it has none'}",
        fix=f'Write "{close[0]}".' if close else f'Name one of them, or add a pool called "{tier.pool}".',
    )


def _cannot_be_left(tier: Tier, pool: Pool, field: str) -> Iterator[Problem]:
    is_on_demand = pool.capacity is CapacityType.ON_DEMAND
    if tier.is_left_for_certain(is_on_demand=is_on_demand):
        return
    given = "no maxFailures" if tier.max_failures is None else f"maxFailures: {tier.max_failures}"
    if not is_on_demand:
        yield Problem(
            field=field,
            value=f'the {pool.capacity.value} tier "{tier.pool}" with {given} and no procurementTimeout',
            allowed=NEEDS_TIMEOUT,
            fix=f"{SET_TIMEOUT_FIX}; or make this the last tier.",
        )
    else:
        yield Problem(
            field=field,
            value=f'the tier "{tier.pool}" with {given} and no procurementTimeout',
            allowed="a way to the next tier: maxFailures of 0 or more, a procurementTimeout, or both",
            fix="Add maxFailures, such as 5, or procurementTimeout, such as 20m; or make this the last tier.",
        )


def _last_tier(tier: Tier, pool: Pool, pools: Mapping[str, Pool], field: str) -> Iterator[Problem]:
    if pool.capacity is not CapacityType.ON_DEMAND and tier.max_failures != UNLIMITED:
        given, kind = "none" if tier.max_failures is None else str(tier.max_failures), pool.capacity.value
        yield Problem(
            field=f"{field}.maxFailures",
            value=f'{given} on the last tier, whose pool "{tier.pool}" is {kind}',
            allowed=f"-1 on a {kind} pool that is last",
            fix=f"Add an on-demand tier below it, such as `- {{pool: {_on_demand_alternative(pool, pools)}}}`, "
            f"or write maxFailures: -1 to stay on {kind} capacity indefinitely.",
        )
        return
    if tier.max_failures not in {None, UNLIMITED}:
        yield _not_on_last_tier(f"{field}.maxFailures", f"{tier.max_failures} on the last tier")
    if tier.procurement_timeout is not None:
        yield _not_on_last_tier(f"{field}.procurementTimeout", "a time limit on the last tier")
    if tier.max_price is not None:
        yield _not_on_last_tier(f"{field}.maxPrice", f"{tier.max_price:g} on the last tier")


def _not_on_last_tier(field: str, value: str) -> Problem:
    return Problem(
        field=field,
        value=value,
        allowed="no value, because no tier follows",
        fix="Remove it, or add the tier that should follow.",
    )


def _mixed_machines(tiers: Mapping[int, Tier], pools: Mapping[str, Pool], at: str) -> Iterator[Problem]:
    here = {index: tier.pool for index, tier in tiers.items() if not tier.cluster}
    known = {index: pools[pool] for index, pool in here.items() if pool in pools}
    if len({pool.has_gpus for pool in known.values()}) > 1:
        kinds = ", ".join(
            f"{pool.name} {'with' if pool.has_gpus else 'without'} GPUs" for pool in known.values()
        )
        yield Problem(
            field=at,
            value=f"a ladder of {kinds}",
            allowed="tiers that all have GPUs or all have none, because a job's pods request the same on each",
            fix="Use the same kind of machine on every tier.",
        )


def _on_demand_alternative(last: Pool, pools: Mapping[str, Pool]) -> str:
    """An on-demand pool with the same kind of machine, or a placeholder name."""
    return _on_demand_example({name: pool for name, pool in pools.items() if pool.has_gpus == last.has_gpus})


def _on_demand_example(pools: Mapping[str, Pool]) -> str:
    return next(
        (pool.name for pool in pools.values() if pool.capacity is CapacityType.ON_DEMAND), "an-on-demand-pool"
    )


def timing_problems(ladder: Ladder, at: str) -> Iterator[Problem]:
    """Validate `giveUpAfter`, `returnAfter`, `holdTimeout` and `failureWindow` of a ladder; `at` is the path of the object that has them."""
    if ladder.give_up_after is not None and ladder.give_up_after < LEAST_GIVE_UP_AFTER:
        yield Problem(
            field=f"{at}.giveUpAfter",
            value=format_duration(ladder.give_up_after),
            allowed=GIVES_UP_TOO_SOON,
            fix=f"{SET_GIVE_UP_AFTER[0].upper()}{SET_GIVE_UP_AFTER[1:]}.",
        )
    if ladder.return_after not in {None, NEVER} and ladder.return_after and len(ladder.tiers) == 1:
        yield Problem(
            field=f"{at}.returnAfter",
            value=f"{format_duration(ladder.return_after)} on a ladder of one tier",
            allowed="a time on a ladder of two tiers or more, because there is no better tier to return to",
            fix="Remove it, or add the tier that jobs should return to.",
        )
    most = max((tier.max_failures or 0 for tier in ladder.tiers), default=0)
    if ladder.failure_window is not None and most > MOST_TIMED_FAILURES:
        yield Problem(
            field=f"{at}.failureWindow",
            value=f"{format_duration(ladder.failure_window)} beside maxFailures: {most}",
            allowed=f"a time on a ladder whose maxFailures are at most {MOST_TIMED_FAILURES}",
            fix="Lower maxFailures, or remove failureWindow.",
        )
    if ladder.hold_timeout is not None and (ladder.return_after == NEVER or len(ladder.tiers) == 1):
        yield Problem(
            field=f"{at}.holdTimeout",
            value=f"{format_duration(ladder.hold_timeout)} on a ladder whose jobs do not return",
            allowed="a time on a ladder of two tiers or more, without returnAfter: never",
            fix="Set returnAfter to a time, such as 1h, or remove holdTimeout.",
        )
