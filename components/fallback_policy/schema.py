"""What the API server accepts as a FallbackPolicy.

The same rules as the stack's configuration has, for ladders that are applied by hand. What needs the pools, as
whether the last one is on-demand, only the configuration and the policy pack can tell. All lists and texts are
bounded: a rule's cost is estimated from those bounds, and an unbounded list would have the definition refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.fallback_policy.durations import duration
from holdfast.components.fallback_policy.shapes_schema import shapes_schema
from holdfast.components.fallback_policy.status_schema import status_schema
from holdfast.components.fallback_policy.tier_schema import MOST_TIERS, tier_schema, tiers_rules
from holdfast.scheduling.labels import LADDER
from holdfast.scheduling.ladder import MOST_FAILURES, UNLIMITED, Failures

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

__all__ = ["MOST_TIERS", "policy_schema"]


def policy_schema() -> Json:
    """Return the schema of a FallbackPolicy."""
    return {
        "type": "object",
        "description": "The ladder that jobs in a training namespace walk down as spot capacity fails them.",
        "required": ["spec"],
        "properties": {"spec": spec_schema(), "status": status_schema()},
        "x-kubernetes-validations": [
            {
                "rule": f"self.metadata.name == '{LADDER}'",
                "message": f"a namespace has one ladder, and jobs find it by its name: {LADDER}",
            }
        ],
    }


def spec_schema() -> Json:
    """Return the schema of the ladder, of how jobs walk it, and of what they look like."""
    return {
        "type": "object",
        "required": ["tiers"],
        "properties": {
            "tiers": {
                "type": "array",
                "description": "The tiers in the order they are tried. The last is on-demand, unless it says -1.",
                "minItems": 1,
                "maxItems": MOST_TIERS,
                "items": tier_schema(),
                "x-kubernetes-list-type": "atomic",
                "x-kubernetes-validations": tiers_rules(),
            },
            "shapes": shapes_schema(),
            **conduct(),
        },
        "x-kubernetes-validations": conduct_rules(),
    }


def conduct() -> Json:
    """Return the schemas of what says how jobs walk their ladder. What is left out is the controller's to choose."""
    return {
        "failures": {
            "type": "string",
            "enum": [each.value for each in Failures],
            "description": (
                "What counts towards maxFailures: any failure, as it is where nothing is said, or evictions alone."
            ),
        },
        "outageWindow": duration("Losses within this time of each other are one failure, as 5m."),
        "giveUpAfter": duration(
            "How long a job may wait for capacity on the last tier before it is given up, as 24h."
        ),
        "applicationFailures": {
            "type": "integer",
            "format": "int32",
            "minimum": UNLIMITED,
            "maximum": MOST_FAILURES,
            "description": (
                "How many failures of its own program a job may have on the last tier before it is given up; "
                "-1 for any number."
            ),
        },
        "returnAfter": duration(
            "How long a job stays on a tier before a better one is tried again, as 4h. Left out: it never goes back up."
        ),
        "holdTimeout": duration(
            "How long to wait for the better tier's capacity before a job is moved up, as 10m."
        ),
        "deadline": duration(
            "Time from a job's creation after which trouble leads straight to the last tier, and there is no way back up, "
            "as 48h."
        ),
        "startTimeout": duration("How long placed pods may take to start before a warning is given, as 30m."),
    }


def conduct_rules() -> list[Json]:
    """Return the rules that keep a setting from being written where it means nothing."""
    return [
        {
            "rule": "!has(self.returnAfter) || self.tiers.size() > 1",
            "message": "a ladder of one tier has no better one for returnAfter to go back to",
        },
        {
            "rule": "!has(self.holdTimeout) || has(self.returnAfter)",
            "message": "holdTimeout is for the way back up, which only returnAfter opens",
        },
    ]
