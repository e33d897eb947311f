"""A job's way down its ladder: which tiers it can run on, where it stops, and whether it reaches on-demand capacity.

On a tier where no pod can be placed nothing runs, so no failure is counted. Only `procurementTimeout` leads past such a
tier: without one a job is stuck there, with on-demand capacity below it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import ARCH
from pulumi_holdfast.ladder.ladder import UNLIMITED
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.checks import (
    CheckResult,
    Failed,
    Undetermined,
    check_last_tier,
    check_pool,
    gang_results,
    without_guesses,
)
from pulumi_holdfast.ladder.reachability.elsewhere import check_elsewhere
from pulumi_holdfast.ladder.reachability.facts import PoolFacts, TierFacts
from pulumi_holdfast.ladder.reachability.pod_capacity import (
    NO_ROOM,
    PodCapacity,
    check_together,
    matching_machines,
    room_for,
)
from pulumi_holdfast.ladder.reachability.shape import Shape
from pulumi_holdfast.ladder.windows import format_time


class Outcome(StrEnum):
    """Where the walk ends."""

    ARRIVES = "arrives"  #: on on-demand nodes that the job can run on
    STAYS = "stays"  #: on spot indefinitely, as `maxFailures: -1` declares
    STUCK = "stuck"  #: on a tier where the job can neither run nor move on
    FALLS_OFF = "falls off"  #: the last tier is no on-demand pool that the job can run on
    UNDETERMINED = "undetermined"  #: it depends on a value that is not known yet


@dataclass(frozen=True, kw_only=True)
class Step:
    """One tier of the walk, with the checks that fail or are undetermined there.

    `on_demand_results` are those of its on-demand pools alone, None if it has none.
    """

    tier: TierFacts
    results: tuple[CheckResult, ...]
    on_demand_results: tuple[CheckResult, ...] | None = None

    @property
    def failed(self) -> tuple[Failed, ...]:
        """The checks that fail, whatever the undetermined ones turn out to be."""
        return tuple(result for result in self.results if isinstance(result, Failed))

    @property
    def takes_the_job(self) -> bool | Unknown:
        """Whether the shape's pods can run here."""
        if self.failed:
            return False
        return UNKNOWN if self.results else True

    @property
    def title(self) -> str:
        """The tier in a message: `tier 3 → pool a100`."""
        pool = "not known yet" if self.tier.pool is UNKNOWN else self.tier.pool
        return messages.tier_title(self.tier.number, pool, self.tier.cluster)


@dataclass(frozen=True, kw_only=True)
class Walk:
    """A shape's way down a ladder: the tiers it reaches, and where it ends."""

    shape: Shape
    steps: tuple[Step, ...]
    outcome: Outcome

    @property
    def never_used(self) -> tuple[Step, ...]:
        """The tiers that a job passes without ever running there: each costs its whole timeout, every time."""
        last = self.steps[-1:] if self.outcome is not Outcome.ARRIVES else ()
        return tuple(step for step in self.steps if step.takes_the_job is False and step not in last)

    @property
    def architectures(self) -> tuple[str, ...]:
        """The architectures of the machines that the pods may get on any of its tiers."""
        kinds = {
            machine.labels.get(ARCH)
            for step in self.steps
            for pool in step.tier.node_pools
            for machine in matching_machines(self.shape, pool)
        }
        return tuple(sorted(each for each in kinds if isinstance(each, str)))


def walk(shape: Shape, tiers: Sequence[TierFacts]) -> Walk:
    """Walk a ladder of one tier or more."""

    def results_at(tier: TierFacts, is_last: bool) -> Iterator[CheckResult]:
        return check_tier(shape, tier, is_last=is_last)

    return _walked(shape, tiers, results_at)


def walk_together(shapes: Sequence[Shape], tiers: Sequence[TierFacts]) -> Walk:
    """Walk a ladder with all shapes of one job, which are always on the same tier; the walk is that of the first.

    A tier takes the job if it takes each shape, and all of them at once.
    """

    def results_at(tier: TierFacts, is_last: bool) -> Iterator[CheckResult]:
        for shape in shapes:
            yield from check_tier(shape, tier, is_last=is_last)
        together = [tuple(check_together(shapes, pool)) for pool in tier.node_pools]
        if len(together) == 1:
            yield from together[0]
        elif together and all(together):
            yield Undetermined(
                check="gang",
                reason="whether its node pools have room for all templates of the job at once is not certain",
            )

    return _walked(shapes[0], tiers, results_at)


def _walked(
    shape: Shape, tiers: Sequence[TierFacts], results_at: Callable[[TierFacts, bool], Iterator[CheckResult]]
) -> Walk:
    steps: list[Step] = []
    for tier in tiers:
        is_last = tier is tiers[-1]
        step = Step(
            tier=tier,
            results=tuple(results_at(tier, is_last)),
            on_demand_results=_on_demand_results(tier, is_last, results_at),
        )
        end = outcome_at(step, is_last=is_last)
        before, steps = tuple(steps), [*steps, step]
        if end is not None:
            return Walk(
                shape=shape,
                steps=tuple(steps),
                outcome=end if _is_certain(end, before) else Outcome.UNDETERMINED,
            )
    raise ValueError("a ladder without tiers cannot be walked")


def _on_demand_results(
    tier: TierFacts, is_last: bool, results_at: Callable[[TierFacts, bool], Iterator[CheckResult]]
) -> tuple[CheckResult, ...] | None:
    here = () if tier.cluster else tier.node_pools
    pools = tuple(pool for pool in here if pool.is_on_demand is True)
    return tuple(results_at(replace(tier, node_pools=pools), is_last)) if pools else None


def _is_certain(end: Outcome, before: Sequence[Step]) -> bool:
    """Whether no unknown value on the earlier tiers can change where the walk ends.

    The job arrives only if it certainly leaves each of them. It fails if none of them may be on-demand and take the job:
    stuck above or fallen off below, it does not arrive. It stays on spot only if both are true.
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
    """Whether the tier may turn out to be on-demand capacity of the ladder's own cluster and take the job."""
    if step.takes_the_job is False or step.tier.cluster:
        return False
    if not step.tier.node_pools or any(pool.is_on_demand is UNKNOWN for pool in step.tier.node_pools):
        return True
    return step.on_demand_results is not None and not _count_failed(step.on_demand_results)


def outcome_at(step: Step, *, is_last: bool) -> Outcome | None:
    """Where the walk ends on this tier; None if it goes on, or may go on."""
    takes, on_demand = step.takes_the_job, step.on_demand_results is not None
    if step.on_demand_results == ():
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
    """Whether a job that reaches this tier certainly gets past it."""
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
    """Yield every check that fails or is undetermined for the shape on a tier."""
    if tier.ended_at is not None:
        yield Failed.by("window", messages.ENDED, time=format_time(tier.ended_at))
    if tier.pool is UNKNOWN:
        yield Undetermined(check="pool", reason="which pool it names is not known yet")
    elif tier.cluster:
        yield from check_elsewhere(tier, is_last=is_last)
        if tier.node_pools:
            yield from _best(shape, tier, is_last=False)
    elif not tier.node_pools and tier.may_be_external:
        yield Undetermined(
            check="pool", reason="another program may make it, and its pools cannot be seen from here"
        )
    elif not tier.node_pools:
        yield Failed(
            check="pool",
            reason="this program makes no such pool",
            fix="Name a pool that exists, or list it in `onDemandPools` if another program makes it.",
        )
    else:
        yield from _best(shape, tier, is_last=is_last)


def _best(shape: Shape, tier: TierFacts, *, is_last: bool) -> tuple[CheckResult, ...]:
    """The results for the node pools that share the name: of the best one, or of all that together have room."""
    stays = tier.max_failures == UNLIMITED
    if shape.apart_by is not None and len(tier.node_pools) > 1:
        reason = f"whether each of its child jobs gets a topology domain for itself ({shape.apart_by[0]}) is not judged"
        shape = replace(shape, apart_by=None, unmodeled=(*shape.unmodeled, reason))
    found = [
        (pool, (*(() if stays else check_last_tier(pool, is_last=is_last)), *check_pool(shape, pool)))
        for pool in tier.node_pools
    ]
    best = min((results for _, results in found), key=lambda results: (_count_failed(results), len(results)))
    usable = [(pool, _without_gang(results)) for pool, results in found]
    usable = [(pool, results) for pool, results in usable if not _count_failed(results)]
    if len(usable) < 2:
        return best
    if not best:
        return tuple(result for pool, _ in usable for result in _may_block(pool))
    return _together(shape, usable, best)


def _may_block(pool: PoolFacts) -> Iterator[CheckResult]:
    """Whether Karpenter may choose this node pool, and fail, although another one takes the pods.

    It counts the values of a label that offerings have, such as the zone, over all machine types before it has narrowed
    them. The API server then rejects the NodeClaim whose requirement has fewer than `minValues`, and the next plan is the
    same (Karpenter v1.14.1, the validation of NodeClaim's requirements).
    """
    keys = sorted(pool.min_values.keys() & {*pool.undecided_by})
    if keys:
        yield Undetermined(
            check="minValues",
            reason=f"Karpenter may choose {pool.title} for the pods, and whether its `minValues` of {', '.join(keys)} can be "
            "met is not known: if not, the pods wait, although another NodePool has room",
        )


def _together(
    shape: Shape, usable: Sequence[tuple[PoolFacts, tuple[CheckResult, ...]]], best: tuple[CheckResult, ...]
) -> tuple[CheckResult, ...]:
    """The results for a gang that is spread over several node pools, each of which takes some of its pods."""
    pools = [pool for pool, _ in usable]

    def check_room(each: Shape) -> Iterator[CheckResult]:
        certain, possible = NO_ROOM, NO_ROOM
        for pool, results in usable:
            room = room_for(each, pool)
            least = PodCapacity(guaranteed=0, at_most=None) if room is UNKNOWN else room
            possible += least
            certain += NO_ROOM if results else least
        capacity = PodCapacity(guaranteed=certain.guaranteed, at_most=possible.at_most)
        return gang_results(each, pools, capacity)

    found = without_guesses(shape, check_room)
    if found or not shape.same_placement:
        return found if _count_failed(best) else found and best
    return (
        Undetermined(
            check="placement",
            reason=f"the gang needs several node pools, whose nodes may not share one {shape.same_placement.value}",
        ),
    )


def _without_gang(found: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    return tuple(result for result in found if result.check != "gang")


def _count_failed(found: Sequence[CheckResult]) -> int:
    return sum(isinstance(result, Failed) for result in found)
