"""Whether one ladder ends on an on-demand pool that exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.policies.known_values import UNKNOWN, at, is_list, is_object, whole_number
from holdfast.scheduling.labels import POOL
from holdfast.scheduling.ladder import UNLIMITED

if TYPE_CHECKING:
    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_pools import KnownPools
    from holdfast.policies.known_values import Value

KNOWN_LATER = "is known only after the update, which checks it again"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is wrong with a ladder's end, or, when not `proven`, what cannot be told yet."""

    message: str
    proven: bool = True


def fault_at_end(ladder: StackResource, pools: KnownPools) -> Fault | None:
    """Return what is wrong with the last tier of a FallbackPolicy, `None` when nothing is."""
    tiers = at(ladder.props, "spec", "tiers")
    if tiers is UNKNOWN:
        return Fault(message=f"what tiers its ladder has {KNOWN_LATER}", proven=False)
    if not is_list(tiers) or not tiers:
        return Fault(
            message="its ladder has no tiers, so its jobs have nowhere to run. Give `spec.tiers` at least one "
            f"tier; the last must name an on-demand pool (this program has: {pools.on_demand()})"
        )
    return fault_of_last(tiers[-1], f"the last tier of its ladder (tier {len(tiers)} of {len(tiers)})", pools)


def fault_of_last(tier: Value, which: str, pools: KnownPools) -> Fault | None:
    """Return what is wrong with a tier as the last one; `which` is how a message names it."""
    pool = at(tier, "pool")
    if pool is UNKNOWN:
        return Fault(message=f"which pool {which} names {KNOWN_LATER}", proven=False)
    if not isinstance(pool, str) or not pool:
        given = "is not an object" if not is_object(tier) else f"has `pool: {pool!r}`"
        return Fault(
            message=f"{which} {given}, so it names no pool. Set its `pool` to the name of an on-demand pool "
            f"(this program has: {pools.on_demand()})"
        )
    if pool in pools.on_demand_elsewhere:
        return None
    if not pools.named(pool):
        return fault_of_missing(pool, which, pools)
    return fault_of_capacity(pool, whole_number(at(tier, "maxFailures")), which, pools)


def fault_of_missing(pool: str, which: str, pools: KnownPools) -> Fault:
    """Return the fault of a tier whose pool no known NodePool makes."""
    if pools.unnamed_as_yet():
        makers = ", ".join(repr(each.node_pool) for each in pools.unnamed_as_yet())
        return Fault(
            message=f"{which} names pool {pool!r}; whether NodePool {makers} makes it {KNOWN_LATER}",
            proven=False,
        )
    unlabelled = pools.unlabelled(pool)
    if unlabelled is not None:
        return Fault(
            message=f"{which} names pool {pool!r}, and the nodes of NodePool {pool!r} lack the label "
            f"{POOL}: {pool} by which jobs select it. Add it under `{unlabelled.labels_path}`"
        )
    return Fault(
        message=f"{which} names pool {pool!r}, which no NodePool of this program makes. Name an on-demand pool "
        f"that exists (this program has: {pools.on_demand()}), add a NodePool whose nodes are labelled "
        f"{POOL}: {pool}, or, if another program makes it, list it in this policy's setting `onDemandPools`"
    )


def fault_of_capacity(pool: str, max_failures: Value, which: str, pools: KnownPools) -> Fault | None:
    """Return the fault of a tier whose pool exists but may be spot, unless the tier says to stay there."""
    wrong = [each for each in pools.named(pool) if each.is_on_demand is not True]
    if not wrong or max_failures == UNLIMITED:
        return None
    if max_failures is UNKNOWN:
        return Fault(message=f"the `maxFailures` of {which}, spot pool {pool!r}, {KNOWN_LATER}", proven=False)
    certain = [each for each in wrong if each.is_on_demand is False]
    if not certain:
        return Fault(message=f"whether pool {pool!r} of {which} is on-demand {KNOWN_LATER}", proven=False)
    allowed = " or ".join(sorted(certain[0].capacity_types)) or "no"
    return Fault(
        message=f"{which} names pool {pool!r}, whose NodePool {certain[0].node_pool!r} makes {allowed} nodes, so a "
        "job that has used up its ladder has no on-demand capacity to fall back to. Append a tier with an "
        f"on-demand pool (this program has: {pools.on_demand()}), or say `maxFailures: -1` on this tier if "
        "its jobs shall stay there for ever"
    )
