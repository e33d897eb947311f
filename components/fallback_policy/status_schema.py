"""What the controller reports in a FallbackPolicy: a summary for people, from which nothing is ever read back.

Where a job is on its ladder stands in the job itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.fallback_policy.texts import DNS_LABEL, text
from holdfast.components.fallback_policy.tier_schema import MOST_TIERS

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

MOST_PROBLEMS = 16


def status_schema() -> Json:
    """Return the schema of the status."""
    return {
        "type": "object",
        "properties": {
            "observedGeneration": {"type": "integer", "format": "int64"},
            "summary": text(512, "One line on the namespace's jobs."),
            "jobs": {**count(), "description": "How many unfinished jobs follow the ladder."},
            "moving": {**count(), "description": "How many of them are between two tiers."},
            "tiers": {
                "type": "array",
                "maxItems": MOST_TIERS,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["pool"],
                "items": {
                    "type": "object",
                    "required": ["pool"],
                    "properties": {
                        "pool": DNS_LABEL,
                        "jobs": {**count(), "description": "How many jobs are on the tier."},
                        "waiting": {**count(), "description": "How many of them wait for its capacity."},
                    },
                },
            },
            "problems": {
                "type": "array",
                "maxItems": MOST_PROBLEMS,
                "items": text(1024, "What is wrong, and the fix."),
                "x-kubernetes-list-type": "atomic",
                "description": "Why the ladder cannot be walked as it stands.",
            },
        },
    }


def count() -> Json:
    """Return the schema of a number of things."""
    return {"type": "integer", "format": "int32", "minimum": 0}
