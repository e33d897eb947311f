"""The rule that a ladder's on-demand pool offers the accelerator that its spot pools offer.

A job trained on A100s that falls back to T4s runs out of memory, or for weeks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.declared import declared_pools
from holdfast.policies.findings import Finding
from holdfast.policies.known_values import UNKNOWN
from holdfast.policies.ladders import ladders_of
from holdfast.scheduling.labels import SPOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.declared import DeclaredPool
    from holdfast.policies.findings import StackResource
    from holdfast.policies.rule import Settings


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the ladders whose first tier's accelerators none of its on-demand tiers has."""
    pools = {pool.label: pool for pool in declared_pools(resources) if isinstance(pool.label, str)}
    found: list[Finding] = []
    for ladder in ladders_of(resources):
        tiers = [pools[name] for name in ladder.pools if name in pools]
        spot = [kind for pool in tiers[:1] if SPOT in pool.facts.capacity_types for kind in kinds(pool)]
        below = [pool for pool in tiers if pool.facts.is_on_demand is not False]
        offered = {kind for pool in below for kind in kinds(pool)}
        untold = any(pool.facts.machines is UNKNOWN or pool.facts.unknown_machine_types for pool in below)
        if spot and below and not untold and len(tiers) == len(ladder.pools) and not offered & {*spot}:
            found.append(
                Finding(
                    urn=ladder.resource.urn,
                    message=f"{ladder.title} starts on {' and '.join(sorted({*spot}))} and falls back to "
                    f"{' and '.join(sorted(offered)) or 'machines without GPUs'}: a job made for the one may not run on "
                    "the other. End it on an on-demand pool with the same accelerator.",
                )
            )
    return tuple(found)


def kinds(pool: DeclaredPool) -> frozenset[str]:
    """The kinds of GPUs that its machines have, as far as they are known."""
    machines = pool.facts.machines
    if machines is UNKNOWN:
        return frozenset()
    return frozenset(each.accelerator for each in machines if each.accelerator is not None)
