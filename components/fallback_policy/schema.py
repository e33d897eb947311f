"""What the API server accepts as a FallbackPolicy.

The same rules as the stack's configuration has, for ladders that are applied by hand. What needs the pools, as
whether the last one is on-demand, only the configuration and the policy pack can tell. All lists and texts are
bounded: a rule's cost is estimated from those bounds, and an unbounded list would have the definition refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduling.durations import LONGEST, PATTERN, format_duration
from scheduling.labels import LADDER, POOL
from scheduling.ladder import FOREVER

if TYPE_CHECKING:
    from scheduling.json import Json

MOST_TIERS = 16
LONGEST_NAME = 63
LONGEST_DURATION = len("999999h999999m999999s")


def policy_schema() -> Json:
    """Return the schema of a FallbackPolicy."""
    return {
        "type": "object",
        "description": "The ladder that jobs in a training namespace walk down as spot capacity fails them.",
        "required": ["spec"],
        "properties": {"spec": spec_schema(), "status": {"type": "object"}},
        "x-kubernetes-validations": [
            {
                "rule": f"self.metadata.name == '{LADDER}'",
                "message": f"a namespace has one ladder, and jobs find it by its name: {LADDER}",
            }
        ],
    }


def spec_schema() -> Json:
    """Return the schema of the ladder."""
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
            }
        },
    }


def tier_schema() -> Json:
    """Return the schema of one tier."""
    return {
        "type": "object",
        "required": ["pool"],
        "properties": {
            "pool": {
                "type": "string",
                "description": f"The pool, by its nodes' label {POOL}.",
                "minLength": 1,
                "maxLength": LONGEST_NAME,
                "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            },
            "maxFailures": {
                "type": "integer",
                "format": "int32",
                "minimum": FOREVER,
                "description": "How many failures the tier may cost before jobs move on; -1 for any number.",
            },
            "procurementTimeout": {
                "type": "string",
                "description": "How long to wait for the tier's capacity, as 45s, 15m or 1h30m.",
                "maxLength": LONGEST_DURATION,
                "pattern": PATTERN,
                "x-kubernetes-validations": [duration_rule()],
            },
        },
    }


def duration_rule() -> Json:
    """Return the rule that bounds a duration, which a pattern cannot: it matches `0m`, and the empty text."""
    longest = format_duration(LONGEST)
    return {
        "rule": f"self != '' && duration(self) >= duration('1s') && duration(self) <= duration('{longest}')",
        "message": f"must be a time with its units from 1s to {longest}, such as 45s, 15m or 1h30m",
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
                f"has(t.procurementTimeout) || (has(t.maxFailures) && t.maxFailures != {FOREVER}))"
            ),
            "message": (
                "every tier but the last needs a way on to the next: maxFailures of 0 or more, "
                "a procurementTimeout, or both"
            ),
        },
        {
            "rule": (
                "!has(self[self.size() - 1].procurementTimeout) && (!has(self[self.size() - 1].maxFailures) || "
                f"self[self.size() - 1].maxFailures == {FOREVER})"
            ),
            "message": (
                "no tier follows the last one, so it may have neither procurementTimeout nor maxFailures, "
                "unless maxFailures: -1 says that its jobs stay on spot for ever"
            ),
        },
    ]
