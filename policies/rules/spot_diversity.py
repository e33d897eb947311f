"""A spot pool can buy in several markets: each machine type in each zone is one.

A pool of one type in one zone is reclaimed as a whole, and sold out as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import SPOT
from pulumi_holdfast.program.pools.all_pools import DeclaredPool, declared_pools
from pulumi_holdfast.program.resources import StackResource
from pulumi_holdfast.program.settings import Settings
from rule import Finding, Group, Level, Rule, RuleSeverity, Setting, number_setting

_MARKETS: Final = "markets"
_ZONES: Final = "zones"


def find(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return the spot pools with fewer markets than the setting `markets`.

    A pool without zones of its own has those of its network: the setting `zones` is their number.
    """
    enough, zones = number_setting(settings, _MARKETS), number_setting(settings, _ZONES)
    found: list[Finding] = []
    for pool in declared_pools(resources):
        count = _market_count(pool, zones)
        if SPOT in pool.facts.capacity_types and count is not None and count < enough:
            found.append(
                Finding(
                    urn=pool.resource.urn,
                    message=f"{pool.title} buys spot in {count} of at least {enough} markets (machine types × zones): a "
                    "market that sells out or is reclaimed can take all its nodes. Add machine types or zones.",
                )
            )
    return tuple(found)


def _market_count(pool: DeclaredPool, zones: int) -> int | None:
    """Return the number of its markets; None if it is not known."""
    facts = pool.facts
    if facts.machines is UNKNOWN or facts.zones is UNKNOWN:
        return None
    types = len(facts.machines) + len(facts.unknown_machine_types)
    return types * (zones if facts.zones is None else len(facts.zones))


RULE: Final = Rule(
    name="spot-pools-diversified",
    title="Spot pools buy in several markets",
    description="A spot pool has several machine types or zones.",
    fix="Add machine types or zones.",
    group=Group.PLATFORM,
    level=Level.ADVISORY,
    severity=RuleSeverity.MEDIUM,
    find=find,
    settings={
        _MARKETS: Setting(
            schema={
                "type": "integer",
                "minimum": 1,
                "description": "The least number of markets (machine types × zones) of a spot pool.",
            },
            default=2,
        ),
        _ZONES: Setting(
            schema={
                "type": "integer",
                "minimum": 1,
                "description": "The number of zones of a pool that names none.",
            },
            default=3,
        ),
    },
)
