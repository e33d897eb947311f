"""A ladder's on-demand pool has the accelerator of its spot pools.

A job for A100s that falls back to T4s runs out of memory, or takes weeks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.inputs.ladder_pools import LadderPools
from holdfast.policies.inputs.ladders import ladders_of
from holdfast.policies.rule import Finding, Level, Rule, RuleSeverity
from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.labels import SPOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.inputs import DeclaredPool
    from holdfast.policies.resources import StackResource
    from holdfast.policies.rule import Settings


def find(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return the ladders whose first tier's accelerators are on none of their on-demand tiers."""
    found: list[Finding] = []
    for ladder in ladders_of(resources):
        pools = LadderPools.of(ladder, resources, settings)
        tiers = [pools.named(name) for name in ladder.pools]
        first = {
            kind
            for each in tiers[:1]
            for pool in each
            if SPOT in pool.facts.capacity_types
            for kind in _kinds(pool)
        }
        on_demand = [pool for each in tiers for pool in each if pool.facts.is_on_demand is not False]
        offered = {kind for pool in on_demand for kind in _kinds(pool)}
        unknown = any(
            pool.facts.machines is UNKNOWN or pool.facts.unknown_machine_types for pool in on_demand
        )
        if first and on_demand and not unknown and all(tiers) and not offered & first:
            found.append(
                Finding(
                    urn=ladder.resource.urn,
                    message=f"{ladder.title} starts on {' and '.join(sorted(first))} and falls back to "
                    f"{' and '.join(sorted(offered)) or 'machines without GPUs'}: a job for the one may not run on the "
                    "other. End it on an on-demand pool with the same accelerator.",
                )
            )
    return tuple(found)


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
    fix="End the ladder on an on-demand pool with the accelerator that it starts on.",
    level=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
