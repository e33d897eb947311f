"""The fields of a FallbackPolicy about pools and jobs: the facts of a tier's pool, and the shapes of a namespace's jobs.

The controller and the admission policies need the facts because an empty pool has no nodes, and admission cannot read
nodes. Each `up` writes them with the pools; a ladder that a user applies may leave them out. The API server only stores
the shapes; the policies and the stack's configuration check that each can fall back.
"""

from __future__ import annotations

from typing import get_args

from pulumi_holdfast.ladder.field_kinds import (
    DNS_LABEL,
    LABEL_KEY,
    LABEL_VALUE,
    LONGEST_AMOUNT,
    QUANTITY_PATTERN,
    amount,
    integer,
    listed,
    rule,
    text,
    time,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Architecture
from pulumi_holdfast.ladder.quantities import CPU_PATTERN, MEMORY_PATTERN
from pulumi_holdfast.ladder.reachability.machine_capacity import (
    LISTED_LABELS,
    MOST_CAPACITIES,
    MOST_LABEL_VALUES,
)
from pulumi_holdfast.ladder.reachability.shape import (
    DEVICE_FIELDS,
    LONGEST_ACCELERATOR,
    MOST_ADAPTERS,
    MOST_DEVICES,
    MOST_GPUS,
    MOST_SELECTED,
    MOST_SHAPES,
    MOST_TOLERATIONS,
    MOVED_LABELS,
    WIDEST_GANG,
    Placement,
)

MOST_LABELS = 16
MOST_TAINTS = 16
MOST_NODES = 10_000
MOST_PODS = 1_000
_LONGEST_MACHINE = 63


def facts_schema() -> Json:
    """Return the schema of a pool's facts."""
    return {
        "type": "object",
        "description": "Facts of the pool, written by the program that creates it.",
        "required": ["capacity"],
        "properties": {
            "capacity": {
                "type": "string",
                "enum": [each.value for each in CapacityType],
                "description": "The capacity type of the pool's nodes.",
            },
            "labels": {
                "type": "object",
                "maxProperties": MOST_LABELS,
                "additionalProperties": LABEL_VALUE,
                "description": "The labels of the pool's nodes.",
            },
            "labelValues": {
                "type": "object",
                "maxProperties": len(LISTED_LABELS),
                "additionalProperties": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MOST_LABEL_VALUES,
                    "items": LABEL_VALUE,
                    "x-kubernetes-list-type": "atomic",
                },
                "description": (
                    "Labels that follow from the machine type, such as kubernetes.io/arch, and the zones: each node has one of the values."
                ),
            },
            "taints": listed(
                taint_schema(),
                MOST_TAINTS,
                "The taints of the pool's nodes, including those that the cloud adds.",
            ),
            "machine": machine_schema(),
            "machines": listed(
                machine_capacity_schema(),
                MOST_CAPACITIES,
                (
                    "What the pool's machines offer to pods, largest first, without machines that another one exceeds "
                    "in every resource."
                ),
            ),
            "maxNodes": integer(1, MOST_NODES, "How many nodes the pool may have."),
            "window": window_schema(),
        },
    }


def window_schema() -> Json:
    """Return the schema of the time in which a reserved pool has its capacity."""
    return {
        "type": "object",
        "description": "When the pool has its reserved capacity. Jobs start there after it begins, and leave when it ends.",
        "properties": {
            "begins": time("When the capacity is there, for example 2026-12-01T11:30:00Z."),
            "ends": time("By when jobs must have left, for example 2026-12-08T10:45:00Z."),
        },
        "x-kubernetes-validations": [
            rule(
                "!has(self.begins) || !has(self.ends) || self.begins < self.ends",
                "begins must be before ends: set the times of the reservation",
            )
        ],
    }


def taint_schema() -> Json:
    """Return the schema of a node taint."""
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
    """Return the schema of what every machine of the pool has at least, before any reservation."""
    return {
        "type": "object",
        "description": "What the smallest machine of the pool has.",
        "required": ["cpu", "memory"],
        "properties": {
            "cpu": amount(QUANTITY_PATTERN, "vCPUs, for example 96."),
            "memory": amount(QUANTITY_PATTERN, "Memory, for example 1152Gi."),
            "gpus": integer(0, MOST_GPUS),
        },
    }


def machine_capacity_schema() -> Json:
    """Return the schema of what a machine offers to pods, without system reservations and DaemonSets."""
    return {
        "type": "object",
        "required": ["name", "cpu", "memory"],
        "properties": {
            "name": text(_LONGEST_MACHINE, "The machine type, for messages."),
            "cpu": amount(QUANTITY_PATTERN, "vCPUs, for example 95400m."),
            "memory": amount(QUANTITY_PATTERN, "Memory, for example 1100Gi."),
            "gpus": integer(0, MOST_GPUS),
            "efa": integer(0, MOST_ADAPTERS),
            "pods": integer(1, MOST_PODS, "The maximum number of pods."),
            "accelerator": text(_LONGEST_MACHINE, "The kind of its GPUs, for example a100."),
            "devices": devices("Other resources of the machine"),
            "allDevices": {"type": "boolean", "description": "The machine has no devices but these."},
        },
    }


def devices(whose: str) -> Json:
    """Return the schema of amounts of devices by the names of their resources."""
    return {
        "type": "object",
        "maxProperties": MOST_DEVICES,
        "additionalProperties": {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            "maxLength": LONGEST_AMOUNT,
            "pattern": f"^[0-9]{{1,5}}$|{MEMORY_PATTERN}",
        },
        "description": f"{whose}: pieces of devices, bytes of ephemeral-storage and huge pages.",
    }


def shapes_schema() -> Json:
    """Return the schema of the shapes."""
    return {
        "type": "array",
        "description": "The jobs that the namespace is for. The policies check that each of them can fall back.",
        "maxItems": MOST_SHAPES,
        "items": shape_schema(),
        "x-kubernetes-list-type": "atomic",
        "x-kubernetes-validations": [
            rule(
                "self.all(s, self.filter(other, other.name == s.name).size() == 1)",
                "each shape needs a unique name: rename one of the two, or remove it",
            )
        ],
    }


def shape_schema() -> Json:
    """Return the schema of a shape: a gang of pods that run together, each with these requests."""
    return {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {**DNS_LABEL, "description": "The name of the shape in reports."},
            "pods": integer(1, WIDEST_GANG, "How many pods run together; default 1."),
            "cpu": amount(CPU_PATTERN, "CPUs of each pod, for example 48 or 500m; default 1."),
            "memory": amount(MEMORY_PATTERN, "Memory of each pod, for example 512Gi; default 2Gi."),
            "gpus": integer(0, MOST_GPUS, "GPUs of each pod; default 0."),
            "efa": integer(0, MOST_ADAPTERS, "Fabric adapters of each pod; default 0."),
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
            "tolerations": listed(
                toleration_schema(), MOST_TOLERATIONS, "What the pods tolerate, beside what admission adds."
            ),
            "architectures": listed(
                {"type": "string", "enum": list(get_args(Architecture))},
                len(get_args(Architecture)),
                "The architectures that the images run on; default not declared.",
                "set",
            ),
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
        rule(
            "!has(self.accelerator) || (has(self.gpus) && self.gpus > 0)",
            "accelerator needs gpus: set the number of GPUs of each pod, or remove accelerator",
        ),
        rule(
            f"!has(self.devices) || ![{own}].exists(name, name in self.devices)",
            f"devices are resources without a field of their own: set {', '.join(DEVICE_FIELDS.values())} instead",
        ),
        rule(
            f"!has(self.selector) || ![{moved}].exists(key, key in self.selector)",
            "a move selects the pool and removes capacity types: remove these labels from selector",
        ),
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
            rule(
                "(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",
                "a toleration without key tolerates every taint: set operator to Exists, or set key",
            ),
            rule(
                "!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
                "operator Exists takes no value: remove value, or set operator to Equal",
            ),
        ],
    }
