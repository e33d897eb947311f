"""The OpenAPI schema of FallbackPolicy: what the API server accepts.

It has the same rules as the stack's configuration, for ladders that users apply themselves. Rules that need
the pools, such as that the last one is on-demand, are in the configuration and the policy pack only. All
lists and strings are bounded: the API server estimates a rule's cost from the bounds and rejects a definition
with an unbounded list. The status is a summary for users; the controller never reads it back.
"""

from __future__ import annotations

from pulumi_holdfast.kubernetes.fallback_policy.shape_schema import shapes_schema
from pulumi_holdfast.kubernetes.fallback_policy.tier_schema import (
    duration,
    duration_or_never,
    text,
    tier_schema,
    tiers_rules,
)
from pulumi_holdfast.ladder.json import Json, sequence
from pulumi_holdfast.ladder.labels import LADDER
from pulumi_holdfast.ladder.ladder import (
    GIVES_UP_TOO_SOON,
    LEAST_GIVE_UP_AFTER,
    MOST_FAILURES,
    MOST_TIERS,
    MOST_TIMED_FAILURES,
    SET_GIVE_UP_AFTER,
    UNLIMITED,
    Failures,
)
from pulumi_holdfast.ladder.quantities import format_duration

MOST_PROBLEMS = 16


def status_schema() -> Json:
    """Return the schema of the status."""
    return {
        "type": "object",
        "properties": {
            "observedGeneration": {"type": "integer", "format": "int64"},
            "summary": text(512, "A summary of the namespace's jobs."),
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
                        "pool": text(2 * 63 + 1, "The pool, with its cluster if that is another one."),
                        "jobs": {**count(), "description": "How many jobs are on the tier."},
                        "waiting": {**count(), "description": "How many of them wait for its capacity."},
                        "nodeHours": {
                            **count(),
                            "description": "The hours of nodes that the unfinished jobs of the ladder have used of the tier.",
                        },
                        "cost": text(
                            32,
                            "What those nodes have cost, in the currency of the prices; empty without a price.",
                        ),
                    },
                },
            },
            "problems": {
                "type": "array",
                "maxItems": MOST_PROBLEMS,
                "items": text(1024, "What is wrong, and the fix."),
                "x-kubernetes-list-type": "atomic",
                "description": "Why the ladder cannot be followed as it is.",
            },
            "conditions": conditions_schema(),
        },
    }


def conditions_schema() -> Json:
    """Return the schema of the conditions, as Kubernetes defines them; `Ready` is the only one."""
    return {
        "type": "array",
        "maxItems": 8,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "description": "Ready: the controller follows the ladder.",
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": text(316, "The condition."),
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
                "lastTransitionTime": {"type": "string", "format": "date-time", "maxLength": 64},
                "reason": text(1024, "Why, in one word."),
                "message": text(1024, "What is wrong, and the fix."),
            },
        },
    }


def count() -> Json:
    """Return the schema of a count."""
    return {"type": "integer", "format": "int32", "minimum": 0}


def policy_schema() -> Json:
    """Return the schema of a FallbackPolicy."""
    return {
        "type": "object",
        "description": "The ladder that jobs in a training namespace move down when spot capacity fails.",
        "required": ["spec"],
        "properties": {"spec": spec_schema(), "status": status_schema()},
        "x-kubernetes-validations": [
            {
                "rule": f"self.metadata.name == '{LADDER}'",
                "message": f"the only FallbackPolicy of a namespace is named {LADDER}: rename it",
            }
        ],
    }


def spec_schema() -> Json:
    """Return the schema of the specification: the tiers, the settings of moves, and the shapes."""
    return {
        "type": "object",
        "required": ["tiers"],
        "properties": {
            "tiers": {
                "type": "array",
                "description": "The tiers in the order in which they are tried. The last one is on-demand, unless its maxFailures is -1.",
                "minItems": 1,
                "maxItems": MOST_TIERS,
                "items": tier_schema(),
                "x-kubernetes-list-type": "atomic",
                "x-kubernetes-validations": tiers_rules(),
            },
            "shapes": shapes_schema(),
            **move_settings(),
        },
        "x-kubernetes-validations": move_setting_rules(),
    }


def move_settings() -> Json:
    """Return the schemas of the settings of moves; the controller has defaults for them."""
    return {
        "failures": {
            "type": "string",
            "enum": [each.value for each in Failures],
            "description": ("What counts towards maxFailures: any failure (the default), or evictions only."),
        },
        "outageWindow": duration(
            "Losses within this time of each other count as one failure, for example 5m."
        ),
        "giveUpAfter": give_up_after(),
        "applicationFailures": {
            "type": "integer",
            "format": "int32",
            "minimum": UNLIMITED,
            "maximum": MOST_FAILURES,
            "description": (
                "How many application failures a job may have on the last tier before it is given up; "
                "-1 means unlimited."
            ),
        },
        "failureWindow": duration(
            "Failures older than this no longer count towards maxFailures, for example 24h. Default: all of a tier visit count."
        ),
        "returnAfter": duration_or_never(
            "How long a job stays on a tier before it tries a better one again, or never. Default: 1h."
        ),
        "holdTimeout": duration(
            "How long to wait for capacity of the better tier before a job moves up, for example 10m."
        ),
        "deadline": duration(
            "Time from a job's creation after which a failure leads directly to the last tier, without failback, "
            "for example 48h."
        ),
        "restartCost": duration(
            "The longest time from the loss of a job's machines until it has its earlier progress again, for example 12m. "
            "Jobs with a deadline of their own keep enough time for it."
        ),
        "startTimeout": duration(
            "How long scheduled pods may take to start before a warning, for example 30m."
        ),
    }


def give_up_after() -> Json:
    """Return the schema of the time after which a job is given up: more than a node needs to start."""
    schema = duration(
        "How long a job may wait for capacity on the last tier before it is given up, for example 24h."
    )
    least = format_duration(LEAST_GIVE_UP_AFTER)
    rule: Json = {
        "rule": f"self == '' || duration(self) >= duration('{least}')",
        "message": f"{GIVES_UP_TOO_SOON}: {SET_GIVE_UP_AFTER}",
    }
    return {**schema, "x-kubernetes-validations": [*sequence(schema["x-kubernetes-validations"]), rule]}


def move_setting_rules() -> list[Json]:
    """Return the rules that reject settings without an effect."""
    return [
        {
            "rule": "!has(self.returnAfter) || self.returnAfter == 'never' || self.tiers.size() > 1",
            "message": "returnAfter needs a ladder of two or more tiers: remove it or add a tier",
        },
        {
            "rule": (
                "!has(self.holdTimeout) || (self.tiers.size() > 1 && "
                "(!has(self.returnAfter) || self.returnAfter != 'never'))"
            ),
            "message": "holdTimeout applies to failback, which this ladder has not: set returnAfter to a time or remove holdTimeout",
        },
        {
            "rule": (
                "!has(self.failureWindow) || "
                f"self.tiers.all(t, !has(t.maxFailures) || t.maxFailures <= {MOST_TIMED_FAILURES})"
            ),
            "message": f"failureWindow needs maxFailures of at most {MOST_TIMED_FAILURES}: lower them or remove failureWindow",
        },
    ]
