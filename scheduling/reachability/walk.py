"""A job's way down its ladder: which tiers it can be on, where it would be stuck, and whether it arrives on-demand.

A tier on which no pod can be placed costs no failures: nothing runs there that could fail. Only `procurementTimeout`
leads past it, and a job that meets one without is stuck for ever with on-demand capacity below it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.ladder import UNLIMITED
from holdfast.scheduling.reachability import messages
from holdfast.scheduling.reachability.checks import (
    CheckResult,
    Failed,
    Undetermined,
    capacity,
    check_pool,
    together,
)
from holdfast.scheduling.reachability.facts import PoolFacts, TierFacts
from holdfast.scheduling.reachability.shape import Shape


class Outcome(StrEnum):
    """Where the walk ends."""

    ARRIVES = "arrives"  #: on on-demand nodes that take it
    STAYS = "stays"  #: on spot for ever, as `maxFailures: -1` says aloud
    STUCK = "stuck"  #: on a tier that it can neither run on nor leave
    FALLS_OFF = "falls off"  #: the ladder's end is no on-demand pool that takes it
    UNDETERMINED = "untold"  #: it hangs on something that is not known yet


@dataclass(frozen=True, kw_only=True)
class Step:
    """One tier of the walk, and what keeps the shape's pods off it or may."""

    tier: TierFacts
    check_pool: tuple[CheckResult, ...]

    @property
    def broken(self) -> tuple[Failed, ...]:
        """The links that are broken, whatever else turns out."""
        return tuple(doubt for doubt in self.results if isinstance(doubt, Failed))

    @property
    def takes_the_job(self) -> bool | Unknown:
        """Whether the shape's pods can run here."""
        if self.broken:
            return False
        return UNKNOWN if self.results else True

    @property
    def title(self) -> str:
        """How a message names the tier: `tier 3 → pool a100`."""
        pool = "not known yet" if self.tier.pool is UNKNOWN else self.tier.pool
        return messages.TIER.format(number=self.tier.number, pool=pool)


@dataclass(frozen=True, kw_only=True)
class Walk:
    """A shape's way down a ladder: the tiers it meets, and where it ends."""

    shape: Shape
    steps: tuple[Step, ...]
    outcome: Outcome

    @property
    def never_used(self) -> tuple[Step, ...]:
        """The tiers that are passed without ever running there: each costs its whole timeout, every time."""
        last = self.steps[-1:] if self.outcome is not Outcome.ARRIVES else ()
        return tuple(step for step in self.steps if step.takes_the_job is False and step not in last)


def walk(shape: Shape, tiers: Sequence[TierFacts]) -> Walk:
    """Walk a ladder of one tier or more."""

    def doubts_at(tier: TierFacts, is_last: bool) -> Iterator[CheckResult]:
        return check_tier(shape, tier, is_last=is_last)

    return _walked(shape, tiers, doubts_at)


def walk_together(shapes: Sequence[Shape], tiers: Sequence[TierFacts]) -> Walk:
    """Walk a ladder with all shapes of one job, which are on the same tier at any time; the walk is that of the first.

    A tier takes the job if it takes each of them, and all at once.
    """

    def doubts_at(tier: TierFacts, is_last: bool) -> Iterator[CheckResult]:
        for shape in shapes:
            yield from check_tier(shape, tier, is_last=is_last)
        if len(tier.node_pools) == 1:
            yield from together(shapes, tier.node_pools[0])

    return _walked(shapes[0], tiers, doubts_at)


def _walked(
    shape: Shape, tiers: Sequence[TierFacts], doubts_at: Callable[[TierFacts, bool], Iterator[CheckResult]]
) -> Walk:
    steps: list[Step] = []
    for tier in tiers:
        is_last = tier is tiers[-1]
        step = Step(tier=tier, results=tuple(doubts_at(tier, is_last)))
        end = outcome_at(step, is_last=is_last)
        before, steps = tuple(steps), [*steps, step]
        if end is not None:
            return Walk(
                shape=shape,
                steps=tuple(steps),
                outcome=end if _is_certain(end, before) else Outcome.UNDETERMINED,
            )
    raise ValueError("a ladder without tiers cannot be walked")


def _is_certain(end: Outcome, before: Sequence[Step]) -> bool:
    """Whether nothing unknown on the tiers before can change where the walk ends.

    To arrive, each of them must surely be left. To fail, it is enough that none of them may be on-demand and take the
    job: stuck above or fallen off below, it does not arrive. To stay on spot takes both.
    """
    all_left = all(leaves(step) is True for step in before)
    none_arrives = not any(may_arrive(step) for step in before)
    match end:
        case Outcome.ARRIVES:
            return all_left
        case Outcome.STAYS:
            return all_left and none_arrives
        case _:
            return none_arrives


def may_arrive(step: Step) -> bool:
    """Whether the tier may turn out to be on-demand and take the job."""
    if step.takes_the_job is False:
        return False
    return not step.tier.node_pools or any(pool.is_on_demand is not False for pool in step.tier.node_pools)


def outcome_at(step: Step, *, is_last: bool) -> Outcome | None:
    """Where the walk ends on this tier, None where it goes on, or may."""
    takes, on_demand = step.takes_the_job, any(pool.is_on_demand is True for pool in step.tier.node_pools)
    if takes is True and on_demand:
        return Outcome.ARRIVES
    if (
        takes is not False
        and not on_demand
        and step.tier.max_failures == UNLIMITED
        and (is_last or step.tier.has_timeout is False)
    ):
        return Outcome.STAYS if takes is True else Outcome.UNDETERMINED
    if takes is False and not is_last and step.tier.has_timeout is False:
        return Outcome.STUCK
    if is_last:
        return Outcome.FALLS_OFF if takes is False else Outcome.UNDETERMINED
    return None


def leaves(step: Step) -> bool | Unknown:
    """Whether a job that meets this tier surely gets beyond it."""
    tier = step.tier
    if tier.has_timeout is True:
        return True
    counts = (
        tier.max_failures is not None and tier.max_failures is not UNKNOWN and tier.max_failures != UNLIMITED
    )
    if step.takes_the_job is True and counts:
        return True
    return UNKNOWN


def check_tier(shape: Shape, tier: TierFacts, *, is_last: bool) -> Iterator[CheckResult]:
    """Yield what keeps the shape's pods off a tier, or may."""
    if tier.pool is UNKNOWN:
        yield Undetermined(link="pool", reason="which pool it names is not known yet")
    elif not tier.node_pools and tier.may_be_external:
        yield Undetermined(
            link="pool", reason="it may be made by another program, which cannot be seen from here"
        )
    elif not tier.node_pools:
        yield Failed(
            link="pool",
            reason="no such pool is made here",
            fix="Name a pool that exists, or list it in `onDemandPools` if another program makes it.",
        )
    else:
        yield from _best(shape, tier, is_last=is_last)


def _best(shape: Shape, tier: TierFacts, *, is_last: bool) -> tuple[CheckResult, ...]:
    """The results about the pool that takes the job best, where several share the name."""
    stays = tier.max_failures == UNLIMITED
    judged = [
        (*(() if stays else capacity(pool, is_last=is_last)), *check_pool(shape, pool))
        for pool in tier.node_pools
    ]
    return min(judged, key=lambda found: (_count_broken(found), len(found)))


def _count_broken(found: Sequence[CheckResult]) -> int:
    return sum(isinstance(doubt, Failed) for doubt in found)


def makers_named(name: str, pools: Sequence[PoolFacts]) -> tuple[PoolFacts, ...]:
    """The pools of that name; several NodePools may make one pool."""
    return tuple(pool for pool in pools if pool.name == name)
