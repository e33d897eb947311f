"""Every job of the shapes that a training namespace declares can reach on-demand capacity.

Jobs are created later and are in no program, so the proof is about shapes. A message names the check that fails, with its
tier and pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.inputs import declared_pools
from holdfast.policies.inputs.ladders import candidates, shapes_of, training_namespaces
from holdfast.policies.rule import Finding, Level, Rule, RuleSeverity, names_setting
from holdfast.policies.rules.ladder_end import (
    ON_DEMAND_POOLS,
    ON_DEMAND_POOLS_SETTING,
    KnownPools,
    fault_at_end,
)
from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.reachability import messages
from holdfast.scheduling.reachability.checks import Undetermined
from holdfast.scheduling.reachability.facts import TierFacts
from holdfast.scheduling.reachability.walk import Outcome, Step, Walk, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.inputs import DeclaredPool
    from holdfast.policies.inputs.ladders import DeclaredLadder
    from holdfast.policies.resources import StackResource
    from holdfast.policies.rule import Settings

#: The worst result of replaying two months of published spot availability: a job of 48 hours that stayed on spot.
_WORST: Final = (
    "in the worst replay of published spot availability, a job of 48 h took 477 h when it stayed on spot"
)


def find_unreachable(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return the shapes that cannot reach on-demand capacity, whatever the update brings."""
    return tuple(each for each in _find(resources, settings) if each.proven)


def find_notes(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return what is not known yet, tiers that no job can use, and ladders that stay on spot."""
    return tuple(each for each in _find(resources, settings) if not each.proven)


def _find(resources: Sequence[StackResource], settings: Settings) -> Iterator[Finding]:
    pools, elsewhere = declared_pools(resources), names_setting(settings, ON_DEMAND_POOLS)
    known = KnownPools(of_stack=pools, on_demand_elsewhere=elsewhere)
    for namespace in training_namespaces(resources):
        for ladder in candidates(namespace, resources).certain:
            # The rule on ladder ends reports a ladder without a valid end.
            if fault_at_end(ladder, known) is None and ladder.tiers is not UNKNOWN:
                for problem, is_proven in _problems(ladder, pools, elsewhere):
                    yield Finding(
                        urn=ladder.resource.urn,
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
        yield "the shapes of its jobs are known only after the update, which checks them again.", False
        return
    for shape in shapes:
        yield from problems_of(walk(shape, tiers))


def tiers_of(
    ladder: DeclaredLadder, pools: Sequence[DeclaredPool], elsewhere: frozenset[str]
) -> tuple[TierFacts, ...]:
    """Return the ladder's tiers with the pools that they name."""
    some_unknown = any(pool.label is UNKNOWN for pool in pools)
    tiers = () if ladder.tiers is UNKNOWN else ladder.tiers
    return tuple(
        TierFacts(
            number=number,
            pool=tier.pool if tier.pool is not None else "(none named)",
            max_failures=tier.max_failures,
            has_timeout=tier.has_timeout,
            node_pools=tuple(pool.facts for pool in pools if pool.label == tier.pool),
            # A program without any pools leaves them to another program.
            may_be_external=not pools or some_unknown or tier.pool in elsewhere,
        )
        for number, tier in enumerate(tiers, start=1)
    )


def problems_of(found: Walk) -> Iterator[tuple[str, bool]]:
    """Yield the problems of a walk, and whether they are proven."""
    for step in found.never_used:
        yield (
            f"{found.shape.title} can never run on {step.title}, and every job waits there until its timeout: {_why(step)}",
            False,
        )
    last = found.steps[-1]
    match found.outcome:
        case Outcome.STUCK:
            yield _cannot_fall_back(found, f"{_why(last)} {messages.NO_WAY_PAST}"), True
        case Outcome.FALLS_OFF:
            yield _cannot_fall_back(found, _why(last)), True
        case Outcome.STAYS:
            yield (
                f"{found.shape.title} stays on spot indefinitely ({last.title}, `maxFailures: -1`): {_WORST}.",
                False,
            )
        case Outcome.UNDETERMINED:
            yield (
                f"{found.shape.title}: whether it can fall back is not known yet: {_undetermined(found)}",
                False,
            )
        case Outcome.ARRIVES:
            pass


def _cannot_fall_back(found: Walk, why: str) -> str:
    return messages.CANNOT_FALL_BACK.format(who=found.shape.title, where=found.steps[-1].title, why=why)


def _why(step: Step) -> str:
    return " ".join(f"{failed.reason}. {failed.fix}".rstrip() for failed in step.failed)


def _undetermined(found: Walk) -> str:
    reasons = [
        f"{step.title}: {result.reason}"
        for step in found.steps
        for result in step.results
        if isinstance(result, Undetermined)
    ]
    return f"{'; '.join(reasons) or 'a job may stay on an earlier tier indefinitely'}."


#: Two rules, because a Pulumi policy has one level: what is not known yet must not hide a proven violation beside it.
RULES: Final = (
    Rule(
        name="training-reaches-on-demand",
        title="Training reaches on-demand capacity",
        description="Every job of the shapes that a training namespace declares can reach and run on an on-demand pool of "
        "its ladder: labels, taints, machine types, room for the whole gang, zones.",
        fix="Fix the check that the message names: change the pool's machines, taints or maxNodes, or the shape.",
        level=Level.MANDATORY,
        severity=RuleSeverity.CRITICAL,
        find=find_unreachable,
        settings={ON_DEMAND_POOLS: ON_DEMAND_POOLS_SETTING},
    ),
    Rule(
        name="training-reachability-notes",
        title="Training that may not reach on-demand, or never leaves spot",
        description="It is known before the update whether jobs can fall back, jobs can run on every tier, and none stays on "
        "spot indefinitely.",
        fix="Read the message: the update checks unknown values again, and a tier that jobs cannot use costs its timeout "
        "every time.",
        level=Level.ADVISORY,
        severity=RuleSeverity.MEDIUM,
        find=find_notes,
        settings={ON_DEMAND_POOLS: ON_DEMAND_POOLS_SETTING},
    ),
)
