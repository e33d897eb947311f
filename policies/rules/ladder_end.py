"""A training namespace has a ladder that jobs get down, and whose last tier is an on-demand pool that exists.

Without one, a job that has used up its spot tiers waits forever, or restarts on the market that keeps evicting it.
`maxFailures: -1` on the last tier declares that staying on spot is intended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import LADDER, POOL, TRAINING, TRAINING_VALUE
from pulumi_holdfast.ladder.ladder import (
    ELSEWHERE_NEEDS_TIMEOUT,
    GIVES_UP_TOO_SOON,
    LEAST_GIVE_UP_AFTER,
    NEEDS_TIMEOUT,
    SET_GIVE_UP_AFTER,
    SET_TIMEOUT_FIX,
    UNLIMITED,
)
from pulumi_holdfast.ladder.quantities import DurationError, parse_duration
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.elsewhere import ENDS_ELSEWHERE
from pulumi_holdfast.program.namespaces.ladder_pools import LadderPools
from pulumi_holdfast.program.namespaces.ladders import (
    DeclaredLadder,
    DeclaredTier,
    LadderCandidates,
    TrainingNamespace,
    candidates,
    training_namespaces,
)
from pulumi_holdfast.program.pools.all_pools import DeclaredPool
from pulumi_holdfast.program.resources import StackResource, is_object, text_at
from pulumi_holdfast.program.settings import ON_DEMAND_POOLS, Settings
from rule import PACK_DEFAULTS, Finding, Level, Rule, RuleSeverity

END: Final = "training-ladder-ends-on-demand"
END_UNKNOWN: Final = "training-ladder-end-unknown"
LEAVES_SPOT: Final = "training-ladder-leaves-spot"

KNOWN_LATER: Final = "is known only after the update, which checks it again"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is wrong with the end of a ladder; unless `proven`, what is not known."""

    message: str
    proven: bool = True


def find_ladder_ends(
    resources: Sequence[StackResource], settings: Settings = PACK_DEFAULTS
) -> tuple[Finding, ...]:
    """Return what is wrong with the ladders of the stack's training namespaces."""
    return tuple(
        finding
        for namespace in training_namespaces(resources)
        for finding in _of_namespace(namespace, resources, settings)
    )


def _of_namespace(
    namespace: TrainingNamespace, resources: Sequence[StackResource], settings: Settings
) -> Iterator[Finding]:
    if namespace.label != TRAINING_VALUE:
        yield _finding(
            namespace, namespace.resource, without_label(namespace), proven=namespace.label is not None
        )
    found = candidates(namespace, resources)
    ladders = found.certain or found.possible
    ends = [(each, fault_at_end(each, LadderPools.of(each, resources, settings))) for each in ladders]
    # If all possible ladders have a bad end, the namespace has one, whichever of them is its own. If one of them is or
    # may be valid, the result is not known yet.
    undecided = not found.certain and any(fault is None or not fault.proven for _, fault in ends)
    pools = LadderPools.near(namespace.resource, resources, settings)
    undecided = undecided or (not ladders and bool(pools.unshown))
    if not ladders and not undecided:
        yield _finding(namespace, namespace.resource, _without_ladder(found, pools), proven=True)
    elif undecided:
        yield _finding(namespace, namespace.resource, f"which ladder it has {KNOWN_LATER}", proven=False)
    else:
        for ladder, fault in ends:
            if fault is not None:
                yield _finding(namespace, ladder.resource, fault.message, proven=fault.proven)


def _finding(namespace: TrainingNamespace, about: StackResource, message: str, *, proven: bool) -> Finding:
    """Return a statement about a namespace; it is not proven while the namespace may not be for training."""
    undetermined = (
        "" if namespace.proven else f" (whether it has the label {TRAINING}={TRAINING_VALUE} {KNOWN_LATER})"
    )
    return Finding(
        urn=about.urn,
        message=f"{namespace.title}{undetermined}: {message}.",
        proven=proven and namespace.proven,
    )


def without_label(namespace: TrainingNamespace) -> str:
    """Return why a namespace with a ladder is, or may be, none for training."""
    if namespace.label is None:
        return (
            f"whether its jobs follow its ladder is not known: this program makes it without the label {TRAINING}. "
            f'Set {TRAINING}: "{TRAINING_VALUE}"'
        )
    return (
        f'it has the label {TRAINING}: "{namespace.label}", so its jobs do not follow its ladder, and nothing moves them to '
        f'on-demand. Set {TRAINING}: "{TRAINING_VALUE}"'
    )


def _without_ladder(found: LadderCandidates, pools: LadderPools) -> str:
    others = ", ".join(repr(ladder.name) for ladder in found.misnamed)
    misnamed = f" (it has {others}, but jobs follow only the one with that name)" if others else ""
    return (
        f"it has the label {TRAINING}={TRAINING_VALUE}, but no FallbackPolicy named {LADDER!r}{misnamed}, so its jobs have "
        "no capacity to fall back to. Add one whose last tier names an on-demand pool "
        f"(this program has: {pools.on_demand()})"
    )


def fault_at_end(ladder: DeclaredLadder, pools: LadderPools) -> Fault | None:
    """Return what is wrong with the last tier of a FallbackPolicy; None if nothing is."""
    tiers = ladder.tiers
    if tiers is UNKNOWN:
        return Fault(message=f"the tiers of its ladder: which they are {KNOWN_LATER}", proven=False)
    if not tiers:
        return Fault(
            message="its ladder has no tiers, so its jobs cannot run. Add a tier to `spec.tiers`; the last one must name "
            f"an on-demand pool (this program has: {pools.on_demand()})"
        )
    which = f"the last tier of its ladder (tier {len(tiers)} of {len(tiers)})"
    faults = [each for each in (_fault_of_last(tiers[-1], which, pools), _fault_of_giving_up(ladder)) if each]
    # What is certain stops the run, whatever an unknown value turns out to be.
    return min(faults, key=lambda fault: not fault.proven, default=None)


def _fault_of_giving_up(ladder: DeclaredLadder) -> Fault | None:
    """Return that jobs are given up on the last tier before its nodes can start."""
    given = text_at(ladder.resource.props, "spec", "giveUpAfter")
    if given is UNKNOWN:
        return Fault(
            message=f"how long its jobs wait on the last tier (`giveUpAfter`) {KNOWN_LATER}", proven=False
        )
    try:
        is_short = given is not None and parse_duration(given) < LEAST_GIVE_UP_AFTER
    except DurationError:
        return None
    if not is_short:
        return None
    fix = f"{SET_GIVE_UP_AFTER[0].upper()}{SET_GIVE_UP_AFTER[1:]}"
    return Fault(message=f"its ladder has `giveUpAfter: {given}`: {GIVES_UP_TOO_SOON}. {fix}")


def _fault_of_last(tier: DeclaredTier, which: str, pools: LadderPools) -> Fault | None:
    pool = tier.pool
    if tier.cluster is UNKNOWN:
        return Fault(message=f"which cluster {which} names {KNOWN_LATER}", proven=False)
    if tier.is_elsewhere:
        return Fault(
            message=f"{which} names cluster {tier.cluster!r}: {ENDS_ELSEWHERE.reason}. Append a tier with an on-demand "
            f"pool of the ladder's own cluster (this program has: {pools.on_demand()})"
        )
    if pool is UNKNOWN:
        return Fault(message=f"which pool {which} names {KNOWN_LATER}", proven=False)
    if not pool:
        given = tier.declared
        named = f"has `pool: {given.get('pool')!r}`" if is_object(given) else "is not an object"
        return Fault(
            message=f"{which} {named}, so it names no pool. Set its `pool` to the name of an on-demand pool "
            f"(this program has: {pools.on_demand()})"
        )
    if pool in pools.on_demand_elsewhere:
        return None
    if not pools.named(pool):
        return fault_of_missing(pool, which, pools)
    return _fault_of_capacity(pool, tier, which, pools)


def fault_of_missing(pool: str, which: str, pools: LadderPools) -> Fault | None:
    """Return why no pool of the program is the one that a tier names; None if another program is declared to make it."""
    unlabelled = pools.without_label(pool)
    if pools.with_unknown_label():
        node_pools = ", ".join(repr(each.node_pool) for each in pools.with_unknown_label())
        return Fault(
            message=f"{which} names pool {pool!r}; whether NodePool {node_pools} makes it {KNOWN_LATER}",
            proven=False,
        )
    if unlabelled is not None and not unlabelled.labels_path:
        return Fault(
            message=f"{which} names pool {pool!r}, which the cloud makes without the label {POOL} by which jobs select it, and "
            f"which cannot be changed. Name an on-demand pool that exists (this program has: {pools.on_demand()}), or add a "
            f"NodePool whose nodes have the label {POOL}"
        )
    if unlabelled is not None:
        return Fault(
            message=f"{which} names pool {pool!r}, but the nodes of NodePool {pool!r} lack the label {POOL}: {pool} by "
            f"which jobs select it. Add it under `{unlabelled.labels_path}`"
        )
    if pools.others_elsewhere:
        return None
    if pools.may_be_elsewhere(pool):
        return Fault(message=f"{which} names pool {pool!r}: {pools.unseen(pool)}", proven=False)
    return Fault(
        message=f"{which} names pool {pool!r}, which no NodePool of this program makes. Name an on-demand pool that exists "
        f"(this program has: {pools.on_demand()}), add a NodePool whose nodes have the label {POOL}: {pool}, or, if another "
        f"program makes it, list it in the pack's setting `{ON_DEMAND_POOLS}`"
    )


def _fault_of_capacity(pool: str, tier: DeclaredTier, which: str, pools: LadderPools) -> Fault | None:
    """Return the fault of a tier whose pool exists but may be spot, unless the tier declares that jobs stay there."""
    not_on_demand = [each for each in pools.named(pool) if each.facts.is_on_demand is not True]
    if not not_on_demand or tier.max_failures == UNLIMITED:
        return None
    if tier.max_failures is UNKNOWN:
        return Fault(message=f"the `maxFailures` of {which}, spot pool {pool!r}, {KNOWN_LATER}", proven=False)
    certain = [each for each in not_on_demand if each.facts.is_on_demand is False]
    if not certain:
        return Fault(message=f"whether pool {pool!r} of {which} is on-demand {KNOWN_LATER}", proven=False)
    made = f"{which} names pool {pool!r}, whose NodePool {certain[0].node_pool!r} makes {_kinds_of(certain[0])} nodes"
    if len(not_on_demand) < len(pools.named(pool)):
        return Fault(
            message=f"{made}, so a job that has used up its ladder may get these instead of the on-demand ones of the pool. Let "
            f"NodePool {certain[0].node_pool!r} make only on-demand nodes, or none with the label {POOL}: {pool}"
        )
    return Fault(
        message=f"{made}, so a job that has used up its ladder has no on-demand capacity to fall back to. Append a tier with an "
        f"on-demand pool (this program has: {pools.on_demand()}), or set `maxFailures: -1` on this tier if its jobs should "
        "stay there indefinitely"
    )


def _kinds_of(pool: DeclaredPool) -> str:
    return " or ".join(sorted(pool.facts.capacity_types)) or "no"


def waits_indefinitely(tier: DeclaredTier, pools: LadderPools) -> bool:
    """Whether a tier that is not the last may be spot and certainly has no `procurementTimeout`.

    The API server asks for one unless the tier's facts say that its pool is on-demand; the pools here may be otherwise.
    """
    if tier.has_timeout is not False or not is_object(tier.declared):
        return False
    if tier.is_elsewhere:
        return tier.cluster is not UNKNOWN
    named = pools.named(tier.pool) if isinstance(tier.pool, str) else ()
    return tier.says_on_demand is False or any(each.facts.is_on_demand is False for each in named)


def find_endless_waits(
    resources: Sequence[StackResource], settings: Settings = PACK_DEFAULTS
) -> tuple[Finding, ...]:
    """Return the tiers that may be spot and that a job leaves only if capacity comes."""
    return tuple(
        _finding(
            namespace, ladder.resource, f"{tier_title(number, tier)}: {_needs_timeout(tier)}", proven=True
        )
        for namespace in training_namespaces(resources)
        for ladder in candidates(namespace, resources).certain
        if ladder.tiers is not UNKNOWN
        for number, tier in enumerate(ladder.tiers[:-1], start=1)
        if waits_indefinitely(tier, LadderPools.of(ladder, resources, settings))
    )


def _needs_timeout(tier: DeclaredTier) -> str:
    why = ELSEWHERE_NEEDS_TIMEOUT if tier.is_elsewhere else NEEDS_TIMEOUT
    return f"{why}. {SET_TIMEOUT_FIX}"


def tier_title(number: int, tier: DeclaredTier) -> str:
    """Return a tier as messages name it."""
    pool = "not known yet" if tier.pool is UNKNOWN else tier.pool or "(none named)"
    return messages.tier_title(number, pool, "(not known yet)" if tier.cluster is UNKNOWN else tier.cluster)


def _find(*, proven: bool) -> Callable[[Sequence[StackResource], Settings], Sequence[Finding]]:
    def find(resources: Sequence[StackResource], settings: Settings) -> Sequence[Finding]:
        return [each for each in find_ladder_ends(resources, settings) if each.proven is proven]

    return find


#: Two rules on the end, because a team sets one level for a rule: what is not known is reported by a rule of its own.
RULES: Final = (
    Rule(
        name=END,
        title="Training ladders end on on-demand",
        description="A training namespace has a ladder whose last tier is an on-demand pool that exists.",
        fix="Append a tier with an on-demand pool to the namespace's ladder, or set `maxFailures: -1` on its last tier if "
        "its jobs should stay on spot indefinitely.",
        level=Level.MANDATORY,
        severity=RuleSeverity.CRITICAL,
        find=_find(proven=True),
    ),
    Rule(
        name=END_UNKNOWN,
        title="Training ladders whose end is unknown",
        description="The pool that the ladder of a training namespace ends on is known before the update.",
        fix="None, if the update passes: it checks again with every value known. If another program makes the pool, list it "
        "in `onDemandPools`.",
        level=Level.ADVISORY,
        severity=RuleSeverity.LOW,
        find=_find(proven=False),
    ),
    Rule(
        name=LEAVES_SPOT,
        title="Training leaves spot",
        description="Every tier of a ladder that may be spot, except the last, has a `procurementTimeout`.",
        fix="Set `procurementTimeout`, such as 20m, on the tier.",
        level=Level.MANDATORY,
        severity=RuleSeverity.CRITICAL,
        find=find_endless_waits,
    ),
)
