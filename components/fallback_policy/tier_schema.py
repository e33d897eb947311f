"""What the API server accepts as a tier of a FallbackPolicy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.fallback_policy.durations import duration
from holdfast.components.fallback_policy.facts_schema import facts_schema
from holdfast.components.fallback_policy.texts import DNS_LABEL, text
from holdfast.scheduling.labels import POOL
from holdfast.scheduling.ladder import MOST_FAILURES, UNLIMITED

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

MOST_TIERS = 16
_LONGEST_CLUSTER = 253


def tier_schema() -> Json:
    """Return the schema of one tier."""
    return {
        "type": "object",
        "required": ["pool"],
        "properties": {
            "pool": {**DNS_LABEL, "description": f"The pool, by its nodes' label {POOL}."},
            "maxFailures": {
                "type": "integer",
                "format": "int32",
                "minimum": UNLIMITED,
                "maximum": MOST_FAILURES,
                "description": "How many failures the tier may cost before jobs move on; -1 for any number.",
            },
            "procurementTimeout": duration("How long to wait for the tier's capacity, as 45s, 15m or 1h30m."),
            "facts": facts_schema(),
            "cluster": text(
                _LONGEST_CLUSTER, "Kept for ladders that lead to another cluster: not to be used yet."
            ),
        },
        # With the name free for anybody's use, a later meaning of it would change ladders that are there.
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.cluster)",
                "message": "a ladder's pools are all of its own cluster: leave cluster out",
            }
        ],
    }


def tiers_rules() -> list[Json]:
    """Return the rules over all tiers together: a ladder that can be walked down to its end, and ends there."""
    return [
        {
            "rule": "self.all(t, self.filter(other, other.pool == t.pool).size() == 1)",
            "message": "each pool may be in a ladder once; raise its maxFailures instead of naming it again",
        },
        {
            "rule": (
                "self.all(t, t.pool == self[self.size() - 1].pool || "
                f"has(t.procurementTimeout) || (has(t.maxFailures) && t.maxFailures != {UNLIMITED}))"
            ),
            "message": (
                "every tier but the last needs a way on to the next: maxFailures of 0 or more, "
                "a procurementTimeout, or both"
            ),
        },
        {
            "rule": (
                "!has(self[self.size() - 1].procurementTimeout) && (!has(self[self.size() - 1].maxFailures) || "
                f"self[self.size() - 1].maxFailures == {UNLIMITED})"
            ),
            "message": (
                "no tier follows the last one, so it may have neither procurementTimeout nor maxFailures, "
                "unless maxFailures: -1 says that its jobs stay on spot for ever"
            ),
        },
    ]
