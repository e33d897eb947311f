"""A ladder as the object that jobs in a namespace follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduling.durations import format_duration

if TYPE_CHECKING:
    from scheduling.json import Json, JsonValue
    from scheduling.ladder import Ladder, Tier


def ladder_spec(ladder: Ladder) -> Json:
    """Return the specification of the ladder's FallbackPolicy."""
    return {"tiers": [tier_object(tier) for tier in ladder.tiers]}


def tier_object(tier: Tier) -> Json:
    """Return one tier; what the ladder leaves open stays absent, since absent has a meaning of its own."""
    written: dict[str, JsonValue] = {"pool": tier.pool}
    if tier.max_failures is not None:
        written["maxFailures"] = tier.max_failures
    if tier.procurement_timeout is not None:
        written["procurementTimeout"] = format_duration(tier.procurement_timeout)
    return written
