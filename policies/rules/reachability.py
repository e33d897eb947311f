"""Every job of the shapes that a training namespace declares can reach on-demand capacity.

Jobs are created later and are in no program, so the proof is about shapes. A message names the check that fails, with its
tier and pool. What the rules on ladder ends and waits report is part of this proof: it repeats them, and only where they are
turned off or lowered is the repetition shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.prices import never_below
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.checks import Failed, Undetermined
from pulumi_holdfast.ladder.reachability.elsewhere import check_checkpoints
from pulumi_holdfast.ladder.reachability.facts import Exported
from pulumi_holdfast.ladder.reachability.node_labels import Provisioner
from pulumi_holdfast.ladder.reachability.walk import Outcome, Step, Walk, walk
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.definitions import refusals
from pulumi_holdfast.program.namespaces.ladder_pools import LadderPools
from pulumi_holdfast.program.namespaces.ladders import (
    DeclaredLadder,
    DeclaredTier,
    TrainingNamespace,
    candidates,
    first_tier_pools,
    shapes_of,
    training_namespaces,
)
from pulumi_holdfast.program.resources import StackResource, at, text_at
from pulumi_holdfast.program.settings import Settings
from rule import Finding, Level, Rule, RuleSeverity
from rules.ladder_end import (
    END,
    END_UNKNOWN,
    LEAVES_SPOT,
    fault_at_end,
    fault_of_missing,
    find_endless_waits,
    find_ladder_ends,
    tier_title,
)
from rules.program_jobs import JobVerdict, job_verdicts

_BOUNDS: Final = frozenset({"kubernetes:core/v1:ResourceQuota", "kubernetes:core/v1:LimitRange"})

#: The worst result of replaying two months of published spot availability: a job of 48 hours that stayed on spot.
_WORST: Final = (
    "in the worst replay of published spot availability, a job of 48 h took 477 h when it stayed on spot"
)


def find_unreachable(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return the shapes that cannot reach on-demand capacity, whatever the update brings."""
    ends = (replace(each, repeats=END) for each in find_ladder_ends(resources, settings) if each.proven)
    waits = (replace(each, repeats=LEAVES_SPOT) for each in find_endless_waits(resources, settings))
    return (*ends, *waits, *(each for each in _find(resources, settings) if each.proven))


def find_notes(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return what is not known yet, tiers that no job can use, and ladders that stay on spot."""
    ends = (
        replace(each, repeats=END_UNKNOWN)
        for each in find_ladder_ends(resources, settings)
        if not each.proven
    )
    return (*ends, *(each for each in _find(resources, settings) if not each.proven))


def _find(resources: Sequence[StackResource], settings: Settings) -> Iterator[Finding]:
    yield from _find_refused(resources, settings)
    for namespace in training_namespaces(resources):
        for ladder in candidates(namespace, resources).certain:
            pools = LadderPools.of(ladder, resources, settings)
            fault = fault_at_end(ladder, pools)
            if ladder.tiers is UNKNOWN or (fault is not None and fault.proven):
                continue
            for found in walks(ladder, pools):
                for problem, is_proven in problems_of(found):
                    is_end = fault is not None and found.outcome is Outcome.UNDETERMINED and not is_proven
                    yield Finding(
                        urn=ladder.resource.urn,
                        message=f"{namespace.title}: {problem}",
                        proven=is_proven and namespace.proven,
                        repeats=END_UNKNOWN if is_end else "",
                    )
            for verdict in job_verdicts(ladder, pools, resources):
                for problem, is_proven in problems_of_job(verdict):
                    yield Finding(
                        urn=verdict.job.resource.urn,
                        message=f"{namespace.title}: {problem}",
                        proven=is_proven and namespace.proven,
                    )
            if shapes_of(ladder, first_tier_pools(ladder, pools.of_stack)) is UNKNOWN:
                yield Finding(
                    urn=ladder.resource.urn, message=f"{namespace.title}: {SHAPES_UNKNOWN}", proven=False
                )
            for problem, is_proven in _problems_of_tiers(ladder.tiers, pools):
                yield Finding(
                    urn=ladder.resource.urn,
                    message=f"{namespace.title}: {problem}",
                    proven=is_proven and namespace.proven,
                )


def _find_refused(resources: Sequence[StackResource], settings: Settings) -> Iterator[Finding]:
    """Yield the objects below each ladder that the API server refuses."""
    for namespace in training_namespaces(resources):
        for ladder in candidates(namespace, resources).certain:
            pools = LadderPools.of(ladder, resources, settings)
            for refused, problem in refused_objects(namespace, ladder, pools):
                yield Finding(
                    urn=refused.urn,
                    message=f"{namespace.title}: {kind_and_name(refused)} cannot be created: {problem}.",
                    proven=namespace.proven,
                    repeats=END if refused is ladder.resource else "",
                )


def kind_and_name(resource: StackResource) -> str:
    """Return an object in a message, by the name of its resource."""
    return f"{resource.type.rpartition(':')[2]} {resource.logical_name!r}"


def refused_objects(
    namespace: TrainingNamespace, ladder: DeclaredLadder, pools: LadderPools
) -> Iterator[tuple[StackResource, str]]:
    """Yield the objects that a ladder rests on and the API server refuses, and why: the namespace with its limits, and the pools."""
    of_ladder = (pool.resource for name in ladder.pools for pool in pools.named(name))
    beside = (
        each
        for each in pools.resources
        if _is_beside(each, namespace) and is_same_cluster(each, ladder.resource, pools.resources) is True
    )
    objects = {each.urn: each for each in (namespace.resource, ladder.resource, *of_ladder, *beside)}
    yield from ((each, problem) for each in objects.values() for problem in refusals(each))


def _is_beside(resource: StackResource, namespace: TrainingNamespace) -> bool:
    """Whether an object bounds the jobs of a namespace."""
    return resource.type in _BOUNDS and text_at(resource.props, "metadata", "namespace") == namespace.name


def _problems_of_tiers(tiers: Sequence[DeclaredTier], pools: LadderPools) -> Iterator[tuple[str, bool]]:
    """Yield what is wrong with tiers whatever the shapes of jobs are, and whether it is certain and keeps jobs from falling back."""
    yield from _checkpoints_elsewhere(tiers, pools)
    for number, tier in enumerate(tiers[:-1], start=1):
        if isinstance(tier.pool, str) and tier.pool and not tier.is_elsewhere and pools.is_unseen(tier.pool):
            fault = fault_of_missing(tier.pool, f"tier {number} of its ladder", pools)
            if fault is not None:
                yield f"{fault.message}.", False
    for problem in _too_expensive(tiers, pools):
        yield problem, False


def _checkpoints_elsewhere(tiers: Sequence[DeclaredTier], pools: LadderPools) -> Iterator[tuple[str, bool]]:
    """Yield the tiers in other clusters on which a job does not find its checkpoints, and whether that is certain."""
    for number, tier in enumerate(tiers, start=1):
        exported = pools.tier(number, tier).exported
        for result in check_checkpoints(exported) if isinstance(exported, Exported) else ():
            sentence = f"{result.reason}. {result.fix}" if isinstance(result, Failed) else f"{result.reason}."
            yield f"{tier_title(number, tier)}: {sentence}", isinstance(result, Failed)


def _too_expensive(tiers: Sequence[DeclaredTier], pools: LadderPools) -> Iterator[str]:
    """Yield the tiers that never have capacity because of their `maxPrice`; jobs still reach the tiers below."""
    for number, tier in enumerate(tiers, start=1):
        most, price = at(tier.declared, "maxPrice"), at(tier.declared, "price")
        # The price table has one region.
        named = pools.named(tier.pool) if isinstance(tier.pool, str) and not tier.is_elsewhere else ()
        types = [
            [each.name for each in pool.facts.machines]
            for pool in named
            if pool.provisioner in _WITH_PRICES
            and pool.facts.machines is not UNKNOWN
            and pool.facts.is_decided
            and not pool.facts.unknown_machine_types
        ]
        if not isinstance(most, int | float) or price is not None or len(types) < len(named):
            continue
        kinds = {kind for pool in named for kind in pool.facts.capacity_types}
        why = never_below(most, [name for each in types for name in each], kinds)
        if why is not None:
            yield f"{tier_title(number, tier)}: {why}"


#: Karpenter's provider for AWS shows prices; elsewhere the controller knows those that tiers declare.
_WITH_PRICES: Final = frozenset({Provisioner.EKS, Provisioner.AUTO})


SHAPES_UNKNOWN: Final = (
    "the shapes of some of its jobs are known only after the update, which checks them again."
)


def walks(ladder: DeclaredLadder, pools: LadderPools) -> Iterator[Walk]:
    """Yield how each shape of a ladder that is known gets down it; a shape that is not known hides no other one."""
    shapes = shapes_of(ladder, first_tier_pools(ladder, pools.of_stack))
    tiers = pools.tiers(ladder)
    for shape in ladder.known_shapes if shapes is UNKNOWN else shapes:
        if tiers:
            yield walk(replace(shape, priority=pools.default_priority), tiers)


def problems_of_job(verdict: JobVerdict) -> Iterator[tuple[str, bool]]:
    """Yield the problems of a job of the program, and whether they are proven."""
    who, found = verdict.title, verdict.walk
    yield from ((f"{who} cannot fall back: {reason}", True) for reason in verdict.broken)
    yield from ((f"{verdict.job.title}: {reason}.", False) for reason in (*verdict.open, *verdict.elsewhere))
    if verdict.note:
        yield f"{verdict.job.title}: {verdict.note}", False
    if found is not None:
        yield from problems_of(found, who)


def problems_of(found: Walk, who: str = "") -> Iterator[tuple[str, bool]]:
    """Yield the problems of a walk of `who`, which is its shape if empty, and whether they are proven."""
    who = who or found.shape.title
    for step in found.never_used:
        yield (
            f"{who} can never run on {step.title}, and every job waits there until its timeout: {why(step)}",
            False,
        )
    last = found.steps[-1]
    match found.outcome:
        case Outcome.STUCK:
            yield _cannot_fall_back(who, last, f"{why(last)} {messages.NO_WAY_PAST}"), True
        case Outcome.FALLS_OFF:
            yield _cannot_fall_back(who, last, why(last)), True
        case Outcome.STAYS:
            yield (f"{who} stays on spot indefinitely ({last.title}, `maxFailures: -1`): {_WORST}.", False)
        case Outcome.UNDETERMINED:
            yield (f"{who}: whether it can fall back is not known yet: {_undetermined(found)}", False)
        case Outcome.ARRIVES:
            pass


def _cannot_fall_back(who: str, last: Step, reasons: str) -> str:
    return messages.CANNOT_FALL_BACK.format(who=who, where=last.title, why=reasons)


def why(step: Step) -> str:
    """Return why no pod runs on a tier, with the fixes."""
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
    ),
)
