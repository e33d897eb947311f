"""The rules over several fields of a ladder, each once: as CEL and as Python.

By the CEL the API server rejects a ladder that a user applies. The Python names the field, the value and the fix of a ladder in a
stack file, where it also knows the pools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeAlias

from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.fields import rule
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import ON_DEMAND, CapacityType
from pulumi_holdfast.ladder.ladder import (
    ELSEWHERE_BETWEEN,
    ELSEWHERE_NEEDS_TIMEOUT,
    GIVES_UP_TOO_SOON,
    LEAST_GIVE_UP_AFTER,
    MOST_TIMED_FAILURES,
    NEEDS_TIMEOUT,
    NEVER,
    SET_GIVE_UP_AFTER,
    SET_TIMEOUT,
    SET_TIMEOUT_FIX,
    UNLIMITED,
    Ladder,
    Tier,
)
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.quantities import format_duration

Pools: TypeAlias = Mapping[str, Pool]


@dataclass(frozen=True, kw_only=True)
class LadderRule:
    """One rule; `problems` gets a ladder, the pools of the stack, and the path of what has the fields."""

    cel: tuple[Json, ...]
    problems: Callable[[Ladder, Pools, str], Iterator[Problem]]


def ladder_problems(ladder: Ladder, pools: Sequence[Pool], at: str) -> Iterator[Problem]:
    """Validate the tiers of a ladder; `at` is the path of their list."""
    known = {pool.name: pool for pool in pools}
    if not ladder.tiers:
        yield Problem(
            field=at,
            value="an empty ladder",
            allowed="one tier or more, the last one on-demand",
            fix=f"Add the pool to run on, such as `- {{pool: {_on_demand_example(known)}}}`.",
        )
    for each in (*RULES_OF_TIERS, *RULES_OF_TIER):
        yield from each.problems(ladder, known, at)
    for index, tier in enumerate(ladder.tiers):
        if not tier.cluster and tier.pool not in known:
            yield _unknown_pool(tier, known, f"{at}[{index}].pool")
    yield from _mixed_machines(ladder, known, at)


def order_problems(ladder: Ladder, at: str) -> Iterator[Problem]:
    """Validate what needs no pools: each is there once, and the first and the last tier are in the ladder's own cluster."""
    for each in (ONCE, ENDS_HERE):
        yield from each.problems(ladder, {}, at)


def timing_problems(ladder: Ladder, at: str) -> Iterator[Problem]:
    """Validate the settings of moves; `at` is the path of the object that has them."""
    for each in (GIVES_UP_LATE, *RULES_OF_SETTINGS):
        yield from each.problems(ladder, {}, at)


def _repeated(ladder: Ladder, _: Pools, at: str) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, tier in enumerate(ladder.tiers):
        if first.setdefault(tier.name, index) != index:
            yield Problem(
                field=f"{at}[{index}].pool",
                value=f'"{tier.pool}" a second time',
                allowed="each pool once in a ladder",
                fix=f"Remove this tier, or raise maxFailures of tier [{first[tier.name]}].",
            )


ONCE: Final = LadderRule(
    cel=(
        rule(
            (
                "self.all(t, self.filter(other, other.pool == t.pool && "
                "has(other.cluster) == has(t.cluster) && (!has(t.cluster) || other.cluster == t.cluster)).size() == 1)"
            ),
            "each pool may be in a ladder once: raise its maxFailures instead of repeating it",
        ),
    ),
    problems=_repeated,
)


def _here(ladder: Ladder, pools: Pools) -> Iterator[tuple[int, Tier, Pool]]:
    """The tiers whose pools are known, with their places."""
    for index, tier in enumerate(ladder.tiers):
        if not tier.cluster and tier.pool in pools:
            yield index, tier, pools[tier.pool]


def _cannot_be_left(ladder: Ladder, pools: Pools, at: str) -> Iterator[Problem]:
    for index, tier, pool in _here(ladder, pools):
        is_on_demand = pool.capacity is CapacityType.ON_DEMAND
        if index == len(ladder.tiers) - 1 or tier.is_left_for_certain(is_on_demand=is_on_demand):
            continue
        given = "no maxFailures" if tier.max_failures is None else f"maxFailures: {tier.max_failures}"
        if not is_on_demand:
            yield Problem(
                field=f"{at}[{index}]",
                value=f'the {pool.capacity.value} tier "{tier.pool}" with {given} and no procurementTimeout',
                allowed=NEEDS_TIMEOUT,
                fix=f"{SET_TIMEOUT_FIX}; or make this the last tier.",
            )
        else:
            yield Problem(
                field=f"{at}[{index}]",
                value=f'the tier "{tier.pool}" with {given} and no procurementTimeout',
                allowed="a way to the next tier: maxFailures of 0 or more, a procurementTimeout, or both",
                fix="Add maxFailures, such as 5, or procurementTimeout, such as 20m; or make this the last tier.",
            )


# The last tier, whose pool may have the name of a pool elsewhere.
_IS_LAST: Final = "(t.pool == self[self.size() - 1].pool && !has(t.cluster))"

LEADS_ON: Final = LadderRule(
    cel=(
        rule(
            (
                f"self.all(t, {_IS_LAST} || "
                f"has(t.procurementTimeout) || (has(t.maxFailures) && t.maxFailures != {UNLIMITED}))"
            ),
            "every tier except the last needs a limit: set maxFailures to 0 or more, procurementTimeout, or both",
        ),
        rule(
            (
                f"self.all(t, {_IS_LAST} || has(t.procurementTimeout) || "
                f"(has(t.facts) && t.facts.capacity == '{ON_DEMAND}'))"
            ),
            f"{NEEDS_TIMEOUT}: {SET_TIMEOUT}",
        ),
    ),
    problems=_cannot_be_left,
)


def _elsewhere_without_timeout(ladder: Ladder, _: Pools, at: str) -> Iterator[Problem]:
    for index, tier in enumerate(ladder.tiers):
        is_end = index in {0, len(ladder.tiers) - 1}
        if tier.cluster and tier.procurement_timeout is None and not is_end:
            yield Problem(
                field=f"{at}[{index}]",
                value=f'the tier "{tier.pool}" of cluster "{tier.cluster}" without procurementTimeout',
                allowed=ELSEWHERE_NEEDS_TIMEOUT,
                fix=f"{SET_TIMEOUT_FIX}.",
            )


LEADS_ON_FROM_ELSEWHERE: Final = LadderRule(
    cel=(
        rule(
            "self.all(t, !has(t.cluster) || has(t.procurementTimeout))",
            f"{ELSEWHERE_NEEDS_TIMEOUT}: {SET_TIMEOUT}",
        ),
    ),
    problems=_elsewhere_without_timeout,
)


def _limits_of_last(ladder: Ladder, pools: Pools, at: str) -> Iterator[Problem]:
    for index, tier, pool in _here(ladder, pools):
        field = f"{at}[{index}]"
        if index != len(ladder.tiers) - 1:
            continue
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


NOTHING_FOLLOWS: Final = LadderRule(
    cel=(
        rule(
            (
                "!has(self[self.size() - 1].procurementTimeout) && (!has(self[self.size() - 1].maxFailures) || "
                f"self[self.size() - 1].maxFailures == {UNLIMITED})"
            ),
            (
                "no tier follows the last one: remove its procurementTimeout and maxFailures, "
                "or set maxFailures: -1 to keep its jobs on spot indefinitely"
            ),
        ),
        rule(
            "!has(self[self.size() - 1].maxPrice)",
            "no tier follows the last one: remove its maxPrice, or add the tier that should follow",
        ),
    ),
    problems=_limits_of_last,
)


def _elsewhere_at_an_end(ladder: Ladder, _: Pools, at: str) -> Iterator[Problem]:
    for index, tier in enumerate(ladder.tiers):
        if tier.cluster and index in {0, len(ladder.tiers) - 1}:
            yield Problem(
                field=f"{at}[{index}].cluster",
                value=f'"{tier.cluster}" on the {"last" if index else "first"} tier',
                allowed=ELSEWHERE_BETWEEN,
                fix="Remove cluster, or move the tier between two tiers of the ladder's own cluster.",
            )


ENDS_HERE: Final = LadderRule(
    cel=(
        rule(
            "!has(self[0].cluster) && !has(self[self.size() - 1].cluster)",
            "the first and the last tier are in the ladder's own cluster: remove cluster, or move the tier between them",
        ),
    ),
    problems=_elsewhere_at_an_end,
)

#: The rules over all tiers: jobs can reach the last tier, and no tier follows it.
RULES_OF_TIERS: Final = (ONCE, LEADS_ON, LEADS_ON_FROM_ELSEWHERE, NOTHING_FOLLOWS, ENDS_HERE)


def _above_max_price(ladder: Ladder, _: Pools, at: str) -> Iterator[Problem]:
    for index, tier in enumerate(ladder.tiers):
        if tier.price is not None and tier.max_price is not None and tier.price > tier.max_price:
            yield Problem(
                field=f"{at}[{index}].maxPrice",
                value=f"{tier.max_price:g}, below price, {tier.price:g}",
                allowed="the tier's price or more, because a tier whose nodes cost more than its maxPrice has no capacity",
                fix="Raise maxPrice, or correct price.",
            )


#: The rules over the fields of one tier.
RULES_OF_TIER: Final = (
    LadderRule(
        cel=(
            rule(
                "!has(self.price) || !has(self.maxPrice) || self.price <= self.maxPrice",
                "a tier whose nodes cost more than its maxPrice has no capacity: raise maxPrice, or correct price",
            ),
        ),
        problems=_above_max_price,
    ),
)


def _gives_up_too_soon(ladder: Ladder, _: Pools, at: str) -> Iterator[Problem]:
    if ladder.give_up_after is not None and ladder.give_up_after < LEAST_GIVE_UP_AFTER:
        yield Problem(
            field=f"{at}.giveUpAfter",
            value=format_duration(ladder.give_up_after),
            allowed=GIVES_UP_TOO_SOON,
            fix=f"{SET_GIVE_UP_AFTER[0].upper()}{SET_GIVE_UP_AFTER[1:]}.",
        )


def _return_nowhere(ladder: Ladder, _: Pools, at: str) -> Iterator[Problem]:
    if ladder.return_after not in {None, NEVER} and ladder.return_after and len(ladder.tiers) == 1:
        yield Problem(
            field=f"{at}.returnAfter",
            value=f"{format_duration(ladder.return_after)} on a ladder of one tier",
            allowed="a time on a ladder of two tiers or more, because there is no better tier to return to",
            fix="Remove it, or add the tier that jobs should return to.",
        )


def _hold_without_return(ladder: Ladder, _: Pools, at: str) -> Iterator[Problem]:
    if ladder.hold_timeout is not None and (ladder.return_after == NEVER or len(ladder.tiers) == 1):
        yield Problem(
            field=f"{at}.holdTimeout",
            value=f"{format_duration(ladder.hold_timeout)} on a ladder whose jobs do not return",
            allowed="a time on a ladder of two tiers or more, without returnAfter: never",
            fix="Set returnAfter to a time, such as 1h, or remove holdTimeout.",
        )


def _too_many_timed_failures(ladder: Ladder, _: Pools, at: str) -> Iterator[Problem]:
    most = max((tier.max_failures or 0 for tier in ladder.tiers), default=0)
    if ladder.failure_window is not None and most > MOST_TIMED_FAILURES:
        yield Problem(
            field=f"{at}.failureWindow",
            value=f"{format_duration(ladder.failure_window)} beside maxFailures: {most}",
            allowed=f"a time on a ladder whose maxFailures are at most {MOST_TIMED_FAILURES}",
            fix="Lower maxFailures, or remove failureWindow.",
        )


#: A rule of `giveUpAfter` itself; a node of the last tier needs that long to start.
GIVES_UP_LATE: Final = LadderRule(
    cel=(
        rule(
            f"self == '' || duration(self) >= duration('{format_duration(LEAST_GIVE_UP_AFTER)}')",
            f"{GIVES_UP_TOO_SOON}: {SET_GIVE_UP_AFTER}",
        ),
    ),
    problems=_gives_up_too_soon,
)

#: The rules that reject settings without an effect.
RULES_OF_SETTINGS: Final = (
    LadderRule(
        cel=(
            rule(
                "!has(self.returnAfter) || self.returnAfter == 'never' || self.tiers.size() > 1",
                "returnAfter needs a ladder of two or more tiers: remove it or add a tier",
            ),
        ),
        problems=_return_nowhere,
    ),
    LadderRule(
        cel=(
            rule(
                (
                    "!has(self.holdTimeout) || (self.tiers.size() > 1 && "
                    "(!has(self.returnAfter) || self.returnAfter != 'never'))"
                ),
                "holdTimeout applies to failback, which this ladder has not: set returnAfter to a time or remove holdTimeout",
            ),
        ),
        problems=_hold_without_return,
    ),
    LadderRule(
        cel=(
            rule(
                (
                    "!has(self.failureWindow) || "
                    f"self.tiers.all(t, !has(t.maxFailures) || t.maxFailures <= {MOST_TIMED_FAILURES})"
                ),
                f"failureWindow needs maxFailures of at most {MOST_TIMED_FAILURES}: lower them or remove failureWindow",
            ),
        ),
        problems=_too_many_timed_failures,
    ),
)


def _unknown_pool(tier: Tier, pools: Pools, field: str) -> Problem:
    close = get_close_matches(tier.pool, pools, n=1)
    return Problem(
        field=field,
        value=f'"{tier.pool}"',
        allowed=f"the pools of this stack: {', '.join(pools) or 'it has none'}",
        fix=f'Write "{close[0]}".' if close else f'Name one of them, or add a pool called "{tier.pool}".',
    )


def _mixed_machines(ladder: Ladder, pools: Pools, at: str) -> Iterator[Problem]:
    known = [pool for _, _, pool in _here(ladder, pools)]
    if len({pool.has_gpus for pool in known}) > 1:
        kinds = ", ".join(f"{pool.name} {'with' if pool.has_gpus else 'without'} GPUs" for pool in known)
        yield Problem(
            field=at,
            value=f"a ladder of {kinds}",
            allowed="tiers that all have GPUs or all have none, because a job's pods request the same on each",
            fix="Use the same kind of machine on every tier.",
        )


def _on_demand_alternative(last: Pool, pools: Pools) -> str:
    """An on-demand pool with the same kind of machine, or a placeholder name."""
    return _on_demand_example({name: pool for name, pool in pools.items() if pool.has_gpus == last.has_gpus})


def _on_demand_example(pools: Pools) -> str:
    return next(
        (pool.name for pool in pools.values() if pool.capacity is CapacityType.ON_DEMAND), "an-on-demand-pool"
    )
