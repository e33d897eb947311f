"""What a tier's pool is, as far as the controller and the admission of jobs have to know it and cannot see it.

An empty pool has no nodes, and admission sees no nodes at all. Written with the pools by the same `up`; a ladder that is
applied by hand may leave it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.fallback_policy.texts import LABEL_KEY, LABEL_VALUE, text
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.reachability.machine_capacity import MOST_CAPACITIES

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

MOST_LABELS = 16
MOST_TAINTS = 16
MOST_NODES = 10_000
MOST_GPUS = 64
MOST_PODS = 1_000
_LONGEST_MACHINE = 63


def facts_schema() -> Json:
    """Return the schema of a pool's facts."""
    return {
        "type": "object",
        "description": "What the pool is, written by whatever made it.",
        "required": ["capacity"],
        "properties": {
            "capacity": {
                "type": "string",
                "enum": [each.value for each in CapacityType],
                "description": "How the pool's machines are bought.",
            },
            "labels": {
                "type": "object",
                "maxProperties": MOST_LABELS,
                "additionalProperties": LABEL_VALUE,
                "description": "The labels of the pool's nodes.",
            },
            "taints": {
                "type": "array",
                "maxItems": MOST_TAINTS,
                "items": taint_schema(),
                "x-kubernetes-list-type": "atomic",
                "description": "The taints of the pool's nodes, those that the cloud adds among them.",
            },
            "machine": machine_schema(),
            "machines": {
                "type": "array",
                "maxItems": MOST_CAPACITIES,
                "items": room_schema(),
                "x-kubernetes-list-type": "atomic",
                "description": (
                    "What pods get of the pool's machines, largest first. One that has no more of anything than another has is "
                    "not listed."
                ),
            },
            "maxNodes": {
                "type": "integer",
                "format": "int32",
                "minimum": 1,
                "maximum": MOST_NODES,
                "description": "How many nodes the pool may have.",
            },
        },
    }


def taint_schema() -> Json:
    """Return the schema of a taint, as a node has it."""
    return {
        "type": "object",
        "required": ["key", "effect"],
        "properties": {
            "key": LABEL_KEY,
            "value": LABEL_VALUE,
            "effect": {"type": "string", "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
        },
    }


def machine_schema() -> Json:
    """Return the schema of what every machine of the pool has at least, before anything is reserved on it."""
    return {
        "type": "object",
        "description": "What the smallest of the pool's machines has.",
        "required": ["cpu", "memory"],
        "properties": {
            "cpu": {**quantity(), "description": "vCPUs, as 96."},
            "memory": {**quantity(), "description": "Memory, as 1152Gi."},
            "gpus": gpus(),
        },
    }


def room_schema() -> Json:
    """Return the schema of what pods get of a machine, beside what is reserved there and what runs on every node."""
    return {
        "type": "object",
        "required": ["name", "cpu", "memory"],
        "properties": {
            "name": text(_LONGEST_MACHINE, "The machine type, as messages name it."),
            "cpu": {**quantity(), "description": "vCPUs, as 95400m."},
            "memory": {**quantity(), "description": "Memory, as 1100Gi."},
            "gpus": gpus(),
            "pods": {
                "type": "integer",
                "format": "int32",
                "minimum": 1,
                "maximum": MOST_PODS,
                "description": "How many pods it takes.",
            },
            "accelerator": text(_LONGEST_MACHINE, "The kind of its GPUs, as a100."),
        },
    }


def gpus() -> Json:
    """Return the schema of a number of GPUs; none where it is left out."""
    return {"type": "integer", "format": "int32", "minimum": 0, "maximum": MOST_GPUS}


def quantity() -> Json:
    """Return the schema of an amount as Kubernetes writes it."""
    return {"type": "string", "maxLength": 20, "pattern": "^[0-9]+(m|[KMGT]i?)?$"}
