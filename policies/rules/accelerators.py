"""A ladder's on-demand pool has the accelerator of its spot pools.

A job for A100s that falls back to T4s runs out of memory, or takes weeks. Declared shapes say which GPUs jobs need, so beside them it
is advice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import SPOT
from pulumi_holdfast.program.namespaces.ladder_pools import LadderPools
from pulumi_holdfast.program.namespaces.ladders import DeclaredLadder, ladders_of
from pulumi_holdfast.program.pools.all_pools import DeclaredPool
from pulumi_holdfast.program.resources import StackResource
from pulumi_holdfast.program.settings import Settings
from rule import Finding, Level, Rule, RuleSeverity


def find(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return the ladders whose first tier's accelerators are on none of their on-demand tiers."""
    found: list[Finding] = []
    for ladder in ladders_of(resources):
        pools = LadderPools.of(ladder, resources, settings)
        # Of tiers in other clusters, the walk of a shape judges the accelerator.
        tiers = {
            number: pools.named(tier.pool)
            for number, tier in enumerate(() if ladder.tiers is UNKNOWN else ladder.tiers, start=1)
            if isinstance(tier.pool, str) and not tier.is_elsewhere
        }
        first = {
            kind for pool in tiers.get(1, ()) if SPOT in pool.facts.capacity_types for kind in _kinds(pool)
        }
        on_demand = [pool for each in tiers.values() for pool in each if pool.facts.is_on_demand is not False]
        offered = {kind for pool in on_demand for kind in _kinds(pool)}
        unknown = any(
            pool.facts.machines is UNKNOWN or pool.facts.unknown_machine_types for pool in on_demand
        )
        differs = first and on_demand and not unknown and all(tiers.values()) and not offered & first
        if differs and _may_need_one(ladder):
            found.append(
                Finding(
                    urn=ladder.resource.urn,
                    message=f"{ladder.title} starts on {' and '.join(sorted(first))} and falls back to "
                    f"{' and '.join(sorted(offered)) or 'machines without GPUs'}: a job for the first may not run "
                    "on the second. End it on an on-demand pool with the same accelerator, or name the `accelerator` of shapes that need it.",
                    proven=not ladder.shapes and ladder.shapes is not UNKNOWN,
                )
            )
        found += [
            Finding(urn=ladder.resource.urn, message=each, proven=False) for each in _smaller(ladder, tiers)
        ]
    return tuple(found)


def _may_need_one(ladder: DeclaredLadder) -> bool:
    """Whether jobs may need one kind of GPU that no shape names; of a shape that names it, the walk judges the accelerator."""
    shapes = () if ladder.shapes is UNKNOWN else ladder.shapes
    return not shapes or any(
        shape is UNKNOWN or (shape.requests.gpus > 0 and shape.accelerator is None) for shape in shapes
    )


def _smaller(ladder: DeclaredLadder, tiers: Mapping[int, Sequence[DeclaredPool]]) -> Iterator[str]:
    """Yield the tiers whose GPUs have the name of those of the first tier, and less memory."""
    first = _gpu_memory(tiers.get(1, ()))
    for number, pools in tiers.items():
        for kind, memory in _gpu_memory(pools).items():
            if memory < first.get(kind, 0):
                yield (
                    f"{ladder.title} starts on {kind} with {first[kind] // _GIB} GiB of memory, and tier {number} has {kind} with "
                    f"{memory // _GIB} GiB: a job that uses more runs out of memory there. Require machine types with as much "
                    "memory in the pool of that tier."
                )


def _gpu_memory(pools: Sequence[DeclaredPool]) -> Mapping[str, int]:
    """Return the least memory of each kind of GPU of pools, as far as it is known."""
    found: dict[str, int] = {}
    for pool in pools:
        for each in pool.facts.machines if pool.facts.machines is not UNKNOWN else ():
            if each.accelerator is not None and each.gpu_memory_mib is not None:
                found[each.accelerator] = min(
                    each.gpu_memory_mib, found.get(each.accelerator, each.gpu_memory_mib)
                )
    return found


_GIB: Final = 1024


def _kinds(pool: DeclaredPool) -> frozenset[str]:
    """Return the kinds of GPUs of its machines, as far as they are known."""
    machines = pool.facts.machines
    if machines is UNKNOWN:
        return frozenset()
    return frozenset(each.accelerator for each in machines if each.accelerator is not None)


RULE: Final = Rule(
    name="same-accelerator-on-demand",
    title="The same accelerator on on-demand",
    description="A ladder's on-demand pool has the accelerator of its spot pools.",
    fix="End the ladder on an on-demand pool with the accelerator that it starts on, or declare shapes with their `accelerator`.",
    level=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
