"""What the API server accepts as the shapes of a namespace's jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.fallback_policy.texts import DNS_LABEL
from holdfast.scheduling.quantities import CPU_PATTERN, MEMORY_PATTERN
from holdfast.scheduling.reachability.shape import LONGEST_ACCELERATOR, MOST_GPUS, MOST_SHAPES, WIDEST_GANG

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

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
    """Return the schema of one shape: a gang of pods that run together, each with these requests."""
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
    """Return the schema of a whole number."""
    return {"type": "integer", "format": "int32", "minimum": least, "maximum": most}


def amount(pattern: str, description: str) -> Json:
    """Return the schema of an amount, held to the pattern that the configuration holds it to."""
    return {"type": "string", "maxLength": _LONGEST_AMOUNT, "pattern": pattern, "description": description}
