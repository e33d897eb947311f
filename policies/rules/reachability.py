"""The rule that every job of the shapes a training namespace declares can reach on-demand capacity.

Jobs come later and are in no program: the proof is about shapes. What a reviewer reads is the link that breaks, by tier
and pool, or that nothing does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.declared import declared_pools
from holdfast.policies.findings import Finding
from holdfast.policies.known_pools import KnownPools
from holdfast.policies.known_values import UNKNOWN
from holdfast.policies.ladders import DeclaredLadder, ladder_of
from holdfast.policies.last_tier import fault_at_end
from holdfast.policies.rule import names
from holdfast.policies.shapes import shapes_of
from holdfast.policies.training_ladders import candidates, training_namespaces
from holdfast.scheduling.reachability import messages
from holdfast.scheduling.reachability.checks import Failed
from holdfast.scheduling.reachability.facts import TierFacts
from holdfast.scheduling.reachability.walk import Outcome, Step, Walk, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.declared import DeclaredPool
    from holdfast.policies.findings import StackResource
    from holdfast.policies.rule import Settings

ELSEWHERE: Final = "onDemandPools"

#: The worst of the replays of two months of published spot availability: a job of 48 hours that stayed on spot.
_WORST: Final = "in the worst replay of published spot availability a job of 48 h took 477 h that way"


def proven(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return the shapes that cannot reach on-demand capacity, whatever the update brings."""
    return tuple(each for each in _findings(resources, settings) if each.proven)


def unproven(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return what is not known yet, tiers that no job can use, and ladders that stay on spot for ever."""
    return tuple(each for each in _findings(resources, settings) if not each.proven)


def _findings(resources: Sequence[StackResource], settings: Settings) -> Iterator[Finding]:
    pools, elsewhere = declared_pools(resources), names(settings, ELSEWHERE)
    ends = _ends(pools, elsewhere)
    for namespace in training_namespaces(resources):
        for resource in candidates(namespace, resources).certain:
            ladder = ladder_of(resource)
            # A ladder without an end is the other rule's to report.
            if fault_at_end(resource, ends) is None and ladder.rungs is not UNKNOWN:
                for problem, is_proven in _problems(ladder, pools, elsewhere):
                    yield Finding(
                        urn=resource.urn,
                        message=f"{namespace.title}: {problem}",
                        proven=is_proven and namespace.proven,
                    )


def _problems(
    ladder: DeclaredLadder, pools: Sequence[DeclaredPool], elsewhere: frozenset[str]
) -> Iterator[tuple[str, bool]]:
    tiers = tiers_of(ladder, pools, elsewhere)
    first = [pool for pool in pools if tiers and pool.facts in tiers[0].node_pools]
    shapes = shapes_of(ladder, first)
    if shapes is UNKNOWN:
        yield "what shapes its jobs have is known only after the update, which checks it again.", False
        return
    for shape in shapes:
        yield from told(walk(shape, tiers))


def tiers_of(
    ladder: DeclaredLadder, pools: Sequence[DeclaredPool], elsewhere: frozenset[str]
) -> tuple[TierFacts, ...]:
    """The ladder's tiers with the pools that make them."""
    unnamed = any(pool.label is UNKNOWN for pool in pools)
    rungs = () if ladder.rungs is UNKNOWN else ladder.rungs
    return tuple(
        TierFacts(
            number=number,
            pool=rung.pool if rung.pool is not None else "(none named)",
            max_failures=rung.max_failures,
            has_timeout=rung.has_timeout,
            node_pools=tuple(pool.facts for pool in pools if pool.label == rung.pool),
            # A program without pools leaves them to another one.
            may_be_external=not pools or unnamed or rung.pool in elsewhere,
        )
        for number, rung in enumerate(rungs, start=1)
    )


def told(found: Walk) -> Iterator[tuple[str, bool]]:
    """Yield what is to be said of a walk, and whether it is proven."""
    for step in found.never_used:
        yield (
            f"{found.shape.title}: {step.title} is of no use to it, and every job waits there in vain: {_why(step)}",
            False,
        )
    last = found.steps[-1]
    match found.outcome:
        case Outcome.STUCK:
            yield _cannot(found, f"{_why(last)} {messages.NO_WAY_PAST}"), True
        case Outcome.FALLS_OFF:
            yield _cannot(found, _why(last)), True
        case Outcome.STAYS:
            yield (
                f"{found.shape.title} stays on spot for ever ({last.title}, `maxFailures: -1`): {_WORST}.",
                False,
            )
        case Outcome.UNDETERMINED:
            yield f"{found.shape.title}: whether it can fall back is not known yet: {_untold(found)}", False
        case Outcome.ARRIVES:
            pass


def _cannot(found: Walk, why: str) -> str:
    return messages.CANNOT_FALL_BACK.format(who=found.shape.title, where=found.steps[-1].title, why=why)


def _why(step: Step) -> str:
    return " ".join(f"{broken.reason}. {broken.fix}".rstrip() for broken in step.failed)


def _untold(found: Walk) -> str:
    results = [
        f"{step.title}: {doubt.reason}"
        for step in found.steps
        for doubt in step.results
        if not isinstance(doubt, Failed)
    ]
    return f"{'; '.join(results) or 'a tier above may hold it for ever'}."


def _ends(pools: Sequence[DeclaredPool], elsewhere: frozenset[str]) -> KnownPools:
    return KnownPools(made_here=tuple(pool.as_ending() for pool in pools), on_demand_elsewhere=elsewhere)
