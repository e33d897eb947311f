"""The rule that a training namespace carries a ladder whose last tier is an on-demand pool that exists.

Without one, a job whose spot tiers are used up waits for ever, or restarts on the very market that keeps evicting
it. `maxFailures: -1` on the last tier says aloud that staying on spot is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.aks_pools import aks_pools
from holdfast.policies.findings import Finding
from holdfast.policies.gke_pools import gke_pools
from holdfast.policies.karpenter_pools import karpenter_pools
from holdfast.policies.known_pools import KnownPools
from holdfast.policies.known_values import at
from holdfast.policies.last_tier import KNOWN_LATER, fault_at_end
from holdfast.policies.training_ladders import candidates, training_namespaces
from holdfast.scheduling.labels import LADDER, TRAINING, TRAINING_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.training_ladders import LadderCandidates, TrainingNamespace


def ladder_end_findings(
    resources: Sequence[StackResource], on_demand_elsewhere: frozenset[str] = frozenset()
) -> tuple[Finding, ...]:
    """Return what is wrong with the ladders of the stack's training namespaces.

    `on_demand_elsewhere` names on-demand pools that the stack's ladders use and another program makes.
    """
    made_here = (*karpenter_pools(resources), *gke_pools(resources), *aks_pools(resources))
    known = KnownPools(made_here=made_here, on_demand_elsewhere=on_demand_elsewhere)
    return tuple(
        finding
        for namespace in training_namespaces(resources)
        for finding in namespace_findings(namespace, resources, known)
    )


def namespace_findings(
    namespace: TrainingNamespace, resources: Sequence[StackResource], known: KnownPools
) -> Iterator[Finding]:
    """Yield what is wrong with one namespace's ladder."""
    found = candidates(namespace, resources)
    ladders = found.certain or found.possible
    ends = [(ladder, fault_at_end(ladder, known)) for ladder in ladders]
    # A ladder that may lie elsewhere excuses nothing when it is broken too: wherever it lies, this namespace
    # ends badly. When one of them is or may be sound, nothing can be told yet.
    undecided = not found.certain and any(fault is None or not fault.proven for _, fault in ends)
    if not ladders:
        yield finding(namespace, namespace.resource, without_ladder(found, known), proven=True)
    elif undecided:
        yield finding(namespace, namespace.resource, f"which ladder lies in it {KNOWN_LATER}", proven=False)
    else:
        for ladder, fault in ends:
            if fault is not None:
                yield finding(namespace, ladder, fault.message, proven=fault.proven)


def finding(namespace: TrainingNamespace, about: StackResource, message: str, *, proven: bool) -> Finding:
    """Return a statement about a namespace; none is proven while it may turn out not to be a training namespace."""
    doubt = "" if namespace.proven else f" (whether its label says {TRAINING}={TRAINING_VALUE} {KNOWN_LATER})"
    return Finding(
        urn=about.urn, message=f"{namespace.title}{doubt}: {message}.", proven=proven and namespace.proven
    )


def without_ladder(found: LadderCandidates, known: KnownPools) -> str:
    """Return the message for a training namespace in which no FallbackPolicy can be its ladder."""
    others = ", ".join(repr(at(resource.props, "metadata", "name")) for resource in found.misnamed)
    misnamed = f" (it has {others}, but jobs follow only the one of that name)" if others else ""
    return (
        f"labelled {TRAINING}={TRAINING_VALUE}, yet without a FallbackPolicy named {LADDER!r}{misnamed}, so its "
        "jobs have nowhere to go when spot capacity fails them. Add one whose last tier names an on-demand pool "
        f"(this program has: {known.on_demand()})"
    )
