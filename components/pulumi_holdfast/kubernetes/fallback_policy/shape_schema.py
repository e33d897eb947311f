"""The OpenAPI schema of shapes: what the jobs of a namespace request, select and tolerate.

The API server only stores them; the policies and the stack's configuration check that each can fall back.
"""

from __future__ import annotations

from typing import get_args

from pulumi_holdfast.kubernetes.fallback_policy.tier_schema import (
    DNS_LABEL,
    LABEL_KEY,
    LABEL_VALUE,
    LONGEST_AMOUNT,
    devices,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.machines import Architecture
from pulumi_holdfast.ladder.quantities import CPU_PATTERN, MEMORY_PATTERN
from pulumi_holdfast.ladder.reachability.shape import (
    DEVICE_FIELDS,
    LONGEST_ACCELERATOR,
    MOST_ADAPTERS,
    MOST_GPUS,
    MOST_SELECTED,
    MOST_SHAPES,
    MOST_TOLERATIONS,
    MOVED_LABELS,
    WIDEST_GANG,
    Placement,
)


def shapes_schema() -> Json:
    """Return the schema of the shapes."""
    return {
        "type": "array",
        "description": "The jobs that the namespace is for. The policies check that each of them can fall back.",
        "maxItems": MOST_SHAPES,
        "items": shape_schema(),
        "x-kubernetes-list-type": "atomic",
        "x-kubernetes-validations": [
            {
                "rule": "self.all(s, self.filter(other, other.name == s.name).size() == 1)",
                "message": "each shape needs a unique name: rename one of the two, or remove it",
            }
        ],
    }


def shape_schema() -> Json:
    """Return the schema of a shape: a gang of pods that run together, each with these requests."""
    return {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {**DNS_LABEL, "description": "The name of the shape in reports."},
            "pods": {**number(1, WIDEST_GANG), "description": "How many pods run together; default 1."},
            "cpu": amount(CPU_PATTERN, "CPUs of each pod, for example 48 or 500m; default 1."),
            "memory": amount(MEMORY_PATTERN, "Memory of each pod, for example 512Gi; default 2Gi."),
            "gpus": {**number(0, MOST_GPUS), "description": "GPUs of each pod; default 0."},
            "efa": {**number(0, MOST_ADAPTERS), "description": "Fabric adapters of each pod; default 0."},
            "accelerator": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_ACCELERATOR,
                "description": "The model of its GPUs, for example a100, a100-80gb, or nvidia-h100-80gb as Google Cloud spells it; default any.",
            },
            "devices": devices("Other resources of each pod"),
            "selector": {
                "type": "object",
                "maxProperties": MOST_SELECTED,
                "additionalProperties": LABEL_VALUE,
                "description": "Node labels that the pods select, beside their pool.",
            },
            "tolerations": {
                "type": "array",
                "maxItems": MOST_TOLERATIONS,
                "items": toleration_schema(),
                "x-kubernetes-list-type": "atomic",
                "description": "What the pods tolerate, beside what admission adds.",
            },
            "architectures": {
                "type": "array",
                "maxItems": len(get_args(Architecture)),
                "items": {"type": "string", "enum": list(get_args(Architecture))},
                "x-kubernetes-list-type": "set",
                "description": "The architectures that the images run on; default not declared.",
            },
            "samePlacement": {
                "type": "string",
                "enum": [each.value for each in Placement],
                "description": "What all pods of the gang have in common: one zone, or one group of hosts in a zone.",
            },
        },
        "x-kubernetes-validations": shape_rules(),
    }


def shape_rules() -> list[Json]:
    """Return the rules over the fields of one shape."""
    own = ", ".join(f"'{name}'" for name in DEVICE_FIELDS)
    moved = ", ".join(f"'{key}'" for key in MOVED_LABELS)
    return [
        {
            "rule": "!has(self.accelerator) || (has(self.gpus) && self.gpus > 0)",
            "message": "accelerator needs gpus: set the number of GPUs of each pod, or remove accelerator",
        },
        {
            "rule": f"!has(self.devices) || ![{own}].exists(name, name in self.devices)",
            "message": f"devices are resources without a field of their own: set {', '.join(DEVICE_FIELDS.values())} instead",
        },
        {
            "rule": f"!has(self.selector) || ![{moved}].exists(key, key in self.selector)",
            "message": "a move selects the pool and removes capacity types: remove these labels from selector",
        },
    ]


def toleration_schema() -> Json:
    """Return the schema of a toleration, as pods spell it."""
    return {
        "type": "object",
        "properties": {
            "key": {**LABEL_KEY, "minLength": 0},
            "operator": {"type": "string", "enum": ["Equal", "Exists"]},
            "value": LABEL_VALUE,
            "effect": {"type": "string", "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
        },
        "x-kubernetes-validations": [
            {
                "rule": "(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",
                "message": "a toleration without key tolerates every taint: set operator to Exists, or set key",
            },
            {
                "rule": "!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
                "message": "operator Exists takes no value: remove value, or set operator to Equal",
            },
        ],
    }


def number(least: int, most: int) -> Json:
    """Return the schema of an integer."""
    return {"type": "integer", "format": "int32", "minimum": least, "maximum": most}


def amount(pattern: str, description: str) -> Json:
    """Return the schema of a quantity with the same pattern as in the configuration."""
    return {"type": "string", "maxLength": LONGEST_AMOUNT, "pattern": pattern, "description": description}
