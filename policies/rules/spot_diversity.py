"""The rule that a spot pool has several markets to buy in: each machine type in each zone is one of its own.

A pool of one type in one zone is taken back as a whole, and sold out as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.declared import declared_pools
from holdfast.policies.findings import Finding
from holdfast.policies.known_values import UNKNOWN
from holdfast.policies.rule import numbers
from holdfast.scheduling.labels import SPOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.declared import DeclaredPool
    from holdfast.policies.findings import StackResource
    from holdfast.policies.rule import Settings

MARKETS = "markets"
ZONES = "zones"


def find(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return the spot pools with fewer markets than the setting `markets`.

    A pool that does not name its zones has those of its network: `zones` says how many.
    """
    enough, zones = numbers(settings, MARKETS), numbers(settings, ZONES)
    found: list[Finding] = []
    for pool in declared_pools(resources):
        count = markets(pool, zones)
        if SPOT in pool.facts.capacity_types and count is not None and count < enough:
            found.append(
                Finding(
                    urn=pool.resource.urn,
                    message=f"{pool.title} buys spot in {count} of the {enough} markets it should have (machine types × "
                    "zones): one that sells out or is reclaimed takes all its nodes. Add machine types, or zones.",
                )
            )
    return tuple(found)


def markets(pool: DeclaredPool, zones: int) -> int | None:
    """How many markets it buys in, None where that is not known."""
    facts = pool.facts
    if facts.machines is UNKNOWN or facts.zones is UNKNOWN:
        return None
    types = len(facts.machines) + len(facts.unknown_machine_types)
    return types * (zones if facts.zones is None else len(facts.zones))
