"""A training namespace has a ladder whose last tier is an on-demand pool that exists.

Without one, a job that has used up its spot tiers waits forever, or restarts on the market that keeps evicting it.
`maxFailures: -1` on the last tier declares that staying on spot is intended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.policies.inputs import all_pools
from holdfast.policies.inputs.ladders import candidates, training_namespaces
from holdfast.policies.resources import is_object
from holdfast.policies.rule import NAMES_SCHEMA, Finding, Level, Rule, RuleSeverity, Setting, names_setting
from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.labels import LADDER, POOL, TRAINING, TRAINING_VALUE
from holdfast.scheduling.ladder import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holdfast.policies.inputs import DeclaredPool
    from holdfast.policies.inputs.ladders import (
        DeclaredLadder,
        DeclaredTier,
        LadderCandidates,
        TrainingNamespace,
    )
    from holdfast.policies.resources import StackResource
    from holdfast.policies.rule import Settings

ON_DEMAND_POOLS: Final = "onDemandPools"
ON_DEMAND_POOLS_SETTING: Final = Setting(
    schema={
        **NAMES_SCHEMA,
        "description": "On-demand pools that ladders of this stack end on and another program makes.",
    },
    default=[],
)

KNOWN_LATER: Final = "is known only after the update, which checks it again"


@dataclass(frozen=True, kw_only=True)
class KnownPools:
    """The pools that a ladder may name: those of the stack, and on-demand pools that another program makes."""

    of_stack: Sequence[DeclaredPool]
    on_demand_elsewhere: frozenset[str]

    def named(self, name: str) -> tuple[DeclaredPool, ...]:
        """Return the stack's pools with that label; several NodePools may share one."""
        return tuple(pool for pool in self.of_stack if pool.label == name)

    def with_unknown_label(self) -> tuple[DeclaredPool, ...]:
        """Return the stack's pools whose label only the update will know."""
        return tuple(pool for pool in self.of_stack if pool.label is UNKNOWN)

    def without_label(self, node_pool: str) -> DeclaredPool | None:
        """Return the stack's NodePool with that name whose nodes have no pool label; None if there is none."""
        unlabelled = (pool for pool in self.of_stack if pool.label is None)
        return next((pool for pool in unlabelled if pool.node_pool == node_pool), None)

    def on_demand(self) -> str:
        """Return the on-demand pools as a message lists them."""
        names = {
            pool.label
            for pool in self.of_stack
            if pool.facts.is_on_demand is True and isinstance(pool.label, str)
        }
        return ", ".join(repr(name) for name in sorted(names | self.on_demand_elsewhere)) or "none"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is wrong with the end of a ladder; unless `proven`, what is not known yet."""

    message: str
    proven: bool = True


def find_ladder_ends(
    resources: Sequence[StackResource], on_demand_elsewhere: frozenset[str] = frozenset()
) -> tuple[Finding, ...]:
    """Return what is wrong with the ladders of the stack's training namespaces.

    `on_demand_elsewhere` names on-demand pools that the stack's ladders use and another program makes.
    """
    pools = KnownPools(of_stack=all_pools(resources), on_demand_elsewhere=on_demand_elsewhere)
    return tuple(
        finding
        for namespace in training_namespaces(resources)
        for finding in _of_namespace(namespace, resources, pools)
    )


def _of_namespace(
    namespace: TrainingNamespace, resources: Sequence[StackResource], pools: KnownPools
) -> Iterator[Finding]:
    found = candidates(namespace, resources)
    ladders = found.certain or found.possible
    ends = [(ladder, fault_at_end(ladder, pools)) for ladder in ladders]
    # If all possible ladders have a bad end, the namespace has one, whichever of them is its own. If one of them is or
    # may be valid, the result is not known yet.
    undecided = not found.certain and any(fault is None or not fault.proven for _, fault in ends)
    if not ladders:
        yield _finding(namespace, namespace.resource, _without_ladder(found, pools), proven=True)
    elif undecided:
        yield _finding(namespace, namespace.resource, f"which ladder it has {KNOWN_LATER}", proven=False)
    else:
        for ladder, fault in ends:
            if fault is not None:
                yield _finding(namespace, ladder.resource, fault.message, proven=fault.proven)


def _finding(namespace: TrainingNamespace, about: StackResource, message: str, *, proven: bool) -> Finding:
    """Return a statement about a namespace; it is not proven while the namespace may not be for training."""
    doubt = (
        "" if namespace.proven else f" (whether it has the label {TRAINING}={TRAINING_VALUE} {KNOWN_LATER})"
    )
    return Finding(
        urn=about.urn, message=f"{namespace.title}{doubt}: {message}.", proven=proven and namespace.proven
    )


def _without_ladder(found: LadderCandidates, pools: KnownPools) -> str:
    others = ", ".join(repr(ladder.name) for ladder in found.misnamed)
    misnamed = f" (it has {others}, but jobs follow only the one with that name)" if others else ""
    return (
        f"it has the label {TRAINING}={TRAINING_VALUE}, but no FallbackPolicy named {LADDER!r}{misnamed}, so its jobs have "
        "no capacity to fall back to. Add one whose last tier names an on-demand pool "
        f"(this program has: {pools.on_demand()})"
    )


def fault_at_end(ladder: DeclaredLadder, pools: KnownPools) -> Fault | None:
    """Return what is wrong with the last tier of a FallbackPolicy; None if nothing is."""
    tiers = ladder.tiers
    if tiers is UNKNOWN:
        return Fault(message=f"the tiers of its ladder: which they are {KNOWN_LATER}", proven=False)
    if not tiers:
        return Fault(
            message="its ladder has no tiers, so its jobs cannot run. Add a tier to `spec.tiers`; the last one must name "
            f"an on-demand pool (this program has: {pools.on_demand()})"
        )
    return _fault_of_last(
        tiers[-1], f"the last tier of its ladder (tier {len(tiers)} of {len(tiers)})", pools
    )


def _fault_of_last(tier: DeclaredTier, which: str, pools: KnownPools) -> Fault | None:
    pool = tier.pool
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
        return _fault_of_missing(pool, which, pools)
    return _fault_of_capacity(pool, tier, which, pools)


def _fault_of_missing(pool: str, which: str, pools: KnownPools) -> Fault:
    if pools.with_unknown_label():
        node_pools = ", ".join(repr(each.node_pool) for each in pools.with_unknown_label())
        return Fault(
            message=f"{which} names pool {pool!r}; whether NodePool {node_pools} makes it {KNOWN_LATER}",
            proven=False,
        )
    unlabelled = pools.without_label(pool)
    if unlabelled is not None:
        return Fault(
            message=f"{which} names pool {pool!r}, but the nodes of NodePool {pool!r} lack the label {POOL}: {pool} by "
            f"which jobs select it. Add it under `{unlabelled.labels_path}`"
        )
    return Fault(
        message=f"{which} names pool {pool!r}, which no NodePool of this program makes. Name an on-demand pool that exists "
        f"(this program has: {pools.on_demand()}), add a NodePool whose nodes have the label {POOL}: {pool}, or, if another "
        f"program makes it, list it in this policy's setting `{ON_DEMAND_POOLS}`"
    )


def _fault_of_capacity(pool: str, tier: DeclaredTier, which: str, pools: KnownPools) -> Fault | None:
    """Return the fault of a tier whose pool exists but may be spot, unless the tier declares that jobs stay there."""
    not_on_demand = [each for each in pools.named(pool) if each.facts.is_on_demand is not True]
    if not not_on_demand or tier.max_failures == UNLIMITED:
        return None
    if tier.max_failures is UNKNOWN:
        return Fault(message=f"the `maxFailures` of {which}, spot pool {pool!r}, {KNOWN_LATER}", proven=False)
    certain = [each for each in not_on_demand if each.facts.is_on_demand is False]
    if not certain:
        return Fault(message=f"whether pool {pool!r} of {which} is on-demand {KNOWN_LATER}", proven=False)
    kinds = " or ".join(sorted(certain[0].facts.capacity_types)) or "no"
    return Fault(
        message=f"{which} names pool {pool!r}, whose NodePool {certain[0].node_pool!r} makes {kinds} nodes, so a job that "
        "has used up its ladder has no on-demand capacity to fall back to. Append a tier with an on-demand pool (this "
        f"program has: {pools.on_demand()}), or set `maxFailures: -1` on this tier if its jobs should stay there indefinitely"
    )


def _find(*, proven: bool) -> Callable[[Sequence[StackResource], Settings], Sequence[Finding]]:
    def find(resources: Sequence[StackResource], settings: Settings) -> Sequence[Finding]:
        found = find_ladder_ends(resources, names_setting(settings, ON_DEMAND_POOLS))
        return [each for each in found if each.proven is proven]

    return find


#: Two rules, because a Pulumi policy has one level: what is not known yet must not hide a proven violation beside it.
RULES: Final = (
    Rule(
        name="training-ladder-ends-on-demand",
        title="Training ladders end on on-demand",
        description="A training namespace has a ladder whose last tier is an on-demand pool that exists.",
        fix="Append a tier with an on-demand pool to the namespace's ladder, or set `maxFailures: -1` on its last tier if "
        "its jobs should stay on spot indefinitely.",
        level=Level.MANDATORY,
        severity=RuleSeverity.CRITICAL,
        find=_find(proven=True),
        settings={ON_DEMAND_POOLS: ON_DEMAND_POOLS_SETTING},
    ),
    Rule(
        name="training-ladder-end-unknown",
        title="Training ladders whose end is unknown",
        description="The pool that the ladder of a training namespace ends on is known before the update.",
        fix="None, if the update passes: it checks again with every value known.",
        level=Level.ADVISORY,
        severity=RuleSeverity.LOW,
        find=_find(proven=False),
        settings={ON_DEMAND_POOLS: ON_DEMAND_POOLS_SETTING},
    ),
)
