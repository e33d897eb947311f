"""The OpenAPI schema of FallbackPolicy: what the API server accepts.

It has the same rules as the stack's configuration, for ladders that users apply themselves. Rules that need
the pools, such as that the last one is on-demand, are in the configuration and the policy pack only. All
lists and strings are bounded: the API server estimates a rule's cost from the bounds and rejects a definition
with an unbounded list. The status is a summary for users; the controller never reads it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.fallback_policy.tier_schema import (
    DNS_LABEL,
    MOST_TIERS,
    duration,
    text,
    tier_schema,
    tiers_rules,
)
from holdfast.scheduling.labels import LADDER
from holdfast.scheduling.ladder import MOST_FAILURES, UNLIMITED, Failures
from holdfast.scheduling.quantities import CPU_PATTERN, MEMORY_PATTERN
from holdfast.scheduling.reachability.shape import LONGEST_ACCELERATOR, MOST_GPUS, MOST_SHAPES, WIDEST_GANG

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
    """Return the schema of a count."""
    return {"type": "integer", "format": "int32", "minimum": 0}


_LONGEST_AMOUNT = 20


def shapes_schema() -> Json:
    """Return the schema of the shapes."""
    return {
        "type": "array",
        "description": "What jobs the namespace is for. The policies prove of each that it can fall back.",
        "maxItems": MOST_SHAPES,
        "items": shape_schema(),
        "x-kubernetes-list-type": "atomic",
        "x-kubernetes-validations": [
            {
                "rule": "self.all(s, self.filter(other, other.name == s.name).size() == 1)",
                "message": "each shape has a name of its own: rename one of the two, or remove it",
            }
        ],
    }


def shape_schema() -> Json:
    """Return the schema of a shape: a gang of pods that run together, each with these requests."""
    return {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {**DNS_LABEL, "description": "How reports name the shape."},
            "pods": {**number(1, WIDEST_GANG), "description": "How many pods run together; 1 if left out."},
            "cpu": amount(CPU_PATTERN, "CPUs of each pod, as 48 or 500m; 1 if left out."),
            "memory": amount(MEMORY_PATTERN, "Memory of each pod, as 512Gi; 2Gi if left out."),
            "gpus": {**number(0, MOST_GPUS), "description": "GPUs of each pod; none if left out."},
            "accelerator": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_ACCELERATOR,
                "description": "The kind of its GPUs, as a100; any kind if left out.",
            },
        },
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.accelerator) || (has(self.gpus) && self.gpus > 0)",
                "message": "accelerator names a kind of GPU: add gpus, how many each pod asks for, or leave it out",
            }
        ],
    }


def number(least: int, most: int) -> Json:
    """Return the schema of an integer."""
    return {"type": "integer", "format": "int32", "minimum": least, "maximum": most}


def amount(pattern: str, description: str) -> Json:
    """Return the schema of a quantity with the same pattern as in the configuration."""
    return {"type": "string", "maxLength": _LONGEST_AMOUNT, "pattern": pattern, "description": description}


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
    """Return the schema of the specification: the tiers, the settings of moves, and the shapes."""
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
    """Return the schemas of the settings of moves; the controller has defaults for them."""
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
    """Return the rules that reject settings without an effect."""
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
