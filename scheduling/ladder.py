"""Fallback ladders: the tiers a job steps down, and what makes a ladder one that can be walked."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

from holdfast.scheduling.errors import Problem
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.pools import Pool
from holdfast.scheduling.quantities import format_duration

#: `maxFailures` of a tier that is never left for its failures.
UNLIMITED: Final = -1

#: The most that may be counted. Beyond it a number is a mistyped UNLIMITED.
MOST_FAILURES: Final = 10_000


class Failures(StrEnum):
    """What counts towards `maxFailures`."""

    ANY = "any"
    EVICTIONS = "evictions"


@dataclass(frozen=True, kw_only=True)
class Tier:
    """One rung: a pool, how many failures it may cost, how long to wait for its capacity.

    `max_failures` is UNLIMITED or absent where failures never end the tier; `procurement_timeout` is absent where the
    wait has no end.
    """

    pool: str
    max_failures: int | None = None
    procurement_timeout: timedelta | None = None

    @property
    def can_be_left(self) -> bool:
        """Whether anything ever moves a job on from here."""
        counts = self.max_failures is not None and self.max_failures != UNLIMITED
        return counts or self.procurement_timeout is not None


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """An ordered list of tiers, best first, and how jobs walk them.

    What is None is left to the controller. `outage_window`: losses so close together are one failure. On the last tier a
    job is given up after `application_failures` of its own program (UNLIMITED: any number), or after waiting for capacity for
    `give_up_after`.
    After `return_after` on a tier a better one is tried again, if its capacity comes within `hold_timeout`; None: never.
    `deadline` after its creation trouble leads a job straight to the last tier, and there is no way back up. Placed pods
    that have not started within `start_timeout` are warned of.
    """

    tiers: tuple[Tier, ...]
    failures: Failures | None = None
    outage_window: timedelta | None = None
    give_up_after: timedelta | None = None
    application_failures: int | None = None
    return_after: timedelta | None = None
    hold_timeout: timedelta | None = None
    start_timeout: timedelta | None = None
    deadline: timedelta | None = None


def ladder_problems(ladder: Ladder, pools: Sequence[Pool], at: str) -> Iterator[Problem]:
    """Everything that keeps a ladder from being walked to its end; `at` is the path of its list of tiers."""
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
    """The same for a ladder of `count` tiers of which only those given could be read.

    `may_exist` tells of a name that is not in `pools` whether it may be that of a pool which could not be read: then
    nothing is said about it. So every fault of a configuration can be shown at once, and none of them twice.
    """
    if count == 0:
        yield Problem(
            field=at,
            value="an empty ladder",
            allowed="one tier or more, the last on-demand",
            fix=f"Add the pool to run on, such as `- {{pool: {_on_demand_example(pools)}}}`.",
        )
    yield from _repeated_pools(tiers, at)
    for index, tier in tiers.items():
        pool = pools.get(tier.pool)
        if pool is None:
            if not may_exist(tier.pool):
                yield _unknown_pool(tier, pools, f"{at}[{index}].pool")
        elif index < count - 1:
            yield from _no_way_on(tier, f"{at}[{index}]")
        else:
            yield from _end_of_ladder(tier, pool, pools, f"{at}[{index}]")
    yield from _mixed_machines(tiers, pools, at)


def _repeated_pools(tiers: Mapping[int, Tier], at: str) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, tier in tiers.items():
        if first.setdefault(tier.pool, index) != index:
            yield Problem(
                field=f"{at}[{index}].pool",
                value=f'"{tier.pool}" a second time',
                allowed="each pool once in a ladder",
                fix=f"Remove this tier, or raise maxFailures of tier [{first[tier.pool]}].",
            )


def _unknown_pool(tier: Tier, pools: Mapping[str, Pool], field: str) -> Problem:
    close = get_close_matches(tier.pool, pools, n=1)
    return Problem(
        field=field,
        value=f'"{tier.pool}"',
        allowed=f"the pools of this stack: {', '.join(pools) or 'it has none'}",
        fix=f'Write "{close[0]}".' if close else f'Name one of them, or add a pool called "{tier.pool}".',
    )


def _no_way_on(tier: Tier, field: str) -> Iterator[Problem]:
    if not tier.can_be_left:
        given = "no maxFailures" if tier.max_failures is None else f"maxFailures: {tier.max_failures}"
        yield Problem(
            field=field,
            value=f'the tier "{tier.pool}" with {given} and no procurementTimeout',
            allowed="a way on to the next tier: maxFailures of 0 or more, a procurementTimeout, or both",
            fix="Add maxFailures, such as 5, or procurementTimeout, such as 15m; or make this the last tier.",
        )


def _end_of_ladder(tier: Tier, pool: Pool, pools: Mapping[str, Pool], field: str) -> Iterator[Problem]:
    if pool.capacity is CapacityType.SPOT and tier.max_failures != UNLIMITED:
        given = "none" if tier.max_failures is None else str(tier.max_failures)
        yield Problem(
            field=f"{field}.maxFailures",
            value=f'{given} on the last tier, whose pool "{tier.pool}" is spot',
            allowed="-1 on a spot pool that is last",
            fix=f"Add an on-demand tier below it, such as `- {{pool: {_way_out_of(pool, pools)}}}`, "
            "or write maxFailures: -1 to stay on spot for ever.",
        )
        return
    if tier.max_failures not in {None, UNLIMITED}:
        yield _leads_nowhere(f"{field}.maxFailures", f"{tier.max_failures} on the last tier")
    if tier.procurement_timeout is not None:
        yield _leads_nowhere(f"{field}.procurementTimeout", "a time limit on the last tier")


def _leads_nowhere(field: str, value: str) -> Problem:
    return Problem(
        field=field,
        value=value,
        allowed="nothing here, since no tier follows to move on to",
        fix="Leave it out, or add the tier that should follow.",
    )


def _mixed_machines(tiers: Mapping[int, Tier], pools: Mapping[str, Pool], at: str) -> Iterator[Problem]:
    known = {index: pools[tier.pool] for index, tier in tiers.items() if tier.pool in pools}
    if len({pool.has_gpus for pool in known.values()}) > 1:
        kinds = ", ".join(
            f"{pool.name} {'with' if pool.has_gpus else 'without'} GPUs" for pool in known.values()
        )
        yield Problem(
            field=at,
            value=f"a ladder of {kinds}",
            allowed="tiers that all have GPUs or all have none, because a job's pods ask for the same on each",
            fix="Give the job's kind of machine on every tier.",
        )


def _way_out_of(spot: Pool, pools: Mapping[str, Pool]) -> str:
    """An on-demand pool with the same kind of machine, if there is one."""
    return _on_demand_example({name: pool for name, pool in pools.items() if pool.has_gpus == spot.has_gpus})


def _on_demand_example(pools: Mapping[str, Pool]) -> str:
    return next(
        (pool.name for pool in pools.values() if pool.capacity is CapacityType.ON_DEMAND), "an-on-demand-pool"
    )


def timing_problems(ladder: Ladder, at: str) -> Iterator[Problem]:
    """Everything that is wrong with how a ladder is to be walked; `at` is the path where that is said."""
    if ladder.return_after is not None and len(ladder.tiers) == 1:
        yield Problem(
            field=f"{at}.returnAfter",
            value=f"{format_duration(ladder.return_after)} on a ladder of one tier",
            allowed="a time on a ladder of two tiers or more, because there is no better tier to go back to",
            fix="Leave it out, or add the tier that jobs should go back to.",
        )
    if ladder.hold_timeout is not None and ladder.return_after is None:
        yield Problem(
            field=f"{at}.holdTimeout",
            value=f"{format_duration(ladder.hold_timeout)} without returnAfter",
            allowed="a time beside returnAfter: capacity is held for jobs on their way back up, and for no others",
            fix="Add returnAfter, such as 4h, or leave it out.",
        )
