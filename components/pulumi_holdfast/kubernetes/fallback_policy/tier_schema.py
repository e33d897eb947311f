"""The OpenAPI schema of a tier, with the facts of its pool.

The controller and the admission policies need the facts because an empty pool has no nodes, and admission
cannot read nodes. Each `up` writes them with the pools; a ladder that a user applies may leave them out.
"""

from __future__ import annotations

from typing import Final

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import ON_DEMAND, POOL, CapacityType
from pulumi_holdfast.ladder.ladder import (
    ELSEWHERE_NEEDS_TIMEOUT,
    HIGHEST_PRICE,
    MOST_FAILURES,
    MOST_TIERS,
    NEEDS_TIMEOUT,
    SET_TIMEOUT,
    UNLIMITED,
)
from pulumi_holdfast.ladder.quantities import (
    DURATION_PATTERN,
    LONGEST_DURATION,
    MEMORY_PATTERN,
    format_duration,
)
from pulumi_holdfast.ladder.reachability.machine_capacity import (
    LISTED_LABELS,
    MOST_CAPACITIES,
    MOST_LABEL_VALUES,
)
from pulumi_holdfast.ladder.reachability.shape import MOST_DEVICES
from pulumi_holdfast.ladder.windows import TIME_PATTERN

_MAX_DURATION_LENGTH = len("999999h999999m999999s")


def duration(description: str) -> Json:
    """Return the schema of a duration."""
    return {
        "type": "string",
        "description": description,
        "maxLength": _MAX_DURATION_LENGTH,
        "pattern": DURATION_PATTERN,
        "x-kubernetes-validations": [duration_rule()],
    }


def duration_or_never(description: str) -> Json:
    """Return the schema of a duration that may also be `never`."""
    rule = duration_rule()
    return {
        **duration(description),
        "pattern": f"^never$|{DURATION_PATTERN}",
        "x-kubernetes-validations": [
            {"rule": f"self == 'never' || ({rule['rule']})", "message": f"{rule['message']}, or never"}
        ],
    }


def duration_rule() -> Json:
    """Return the rule that bounds a duration. The pattern alone would allow `0m` and the empty string."""
    longest = format_duration(LONGEST_DURATION)
    return {
        "rule": f"self != '' && duration(self) >= duration('1s') && duration(self) <= duration('{longest}')",
        "message": f"must be a duration with units from 1s to {longest}, such as 45s, 15m or 1h30m",
    }


_LONGEST_NAME: Final = 63
LONGEST_AMOUNT: Final = 20
#: A prefix of 253 characters, a slash and a name.
_LONGEST_KEY: Final = 253 + 1 + _LONGEST_NAME

DNS_LABEL: Final[Json] = {
    "type": "string",
    "minLength": 1,
    "maxLength": _LONGEST_NAME,
    "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
}

LABEL_KEY: Final[Json] = {"type": "string", "minLength": 1, "maxLength": _LONGEST_KEY}

LABEL_VALUE: Final[Json] = {"type": "string", "maxLength": _LONGEST_NAME}


def text(longest: int, description: str) -> Json:
    """Return the schema of a string for readers."""
    return {"type": "string", "maxLength": longest, "description": description}


MOST_LABELS = 16
MOST_TAINTS = 16
MOST_NODES = 10_000
MOST_GPUS = 64
MOST_ADAPTERS = 64
MOST_PODS = 1_000
_LONGEST_MACHINE = 63
_LONGEST_ADDRESS = 512


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
            "taints": {
                "type": "array",
                "maxItems": MOST_TAINTS,
                "items": taint_schema(),
                "x-kubernetes-list-type": "atomic",
                "description": "The taints of the pool's nodes, including those that the cloud adds.",
            },
            "machine": machine_schema(),
            "machines": {
                "type": "array",
                "maxItems": MOST_CAPACITIES,
                "items": machine_capacity_schema(),
                "x-kubernetes-list-type": "atomic",
                "description": (
                    "What the pool's machines offer to pods, largest first, without machines that another one exceeds "
                    "in every resource."
                ),
            },
            "maxNodes": {
                "type": "integer",
                "format": "int32",
                "minimum": 1,
                "maximum": MOST_NODES,
                "description": "How many nodes the pool may have.",
            },
            "window": window_schema(),
        },
    }


def window_schema() -> Json:
    """Return the schema of the time in which a reserved pool has its capacity."""
    return {
        "type": "object",
        "description": "When the pool has its reserved capacity. Jobs start there after it begins, and leave when it ends.",
        "properties": {
            "begins": _time("When the capacity is there, for example 2026-12-01T11:30:00Z."),
            "ends": _time("By when jobs must have left, for example 2026-12-08T10:45:00Z."),
        },
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.begins) || !has(self.ends) || self.begins < self.ends",
                "message": "begins must be before ends: set the times of the reservation",
            }
        ],
    }


def _time(description: str) -> Json:
    return {
        "type": "string",
        "maxLength": len("2026-12-01T11:30:00Z"),
        "pattern": TIME_PATTERN,
        "description": description,
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
            "cpu": {**quantity(), "description": "vCPUs, for example 96."},
            "memory": {**quantity(), "description": "Memory, for example 1152Gi."},
            "gpus": gpus(),
        },
    }


def machine_capacity_schema() -> Json:
    """Return the schema of what a machine offers to pods, without system reservations and DaemonSets."""
    return {
        "type": "object",
        "required": ["name", "cpu", "memory"],
        "properties": {
            "name": text(_LONGEST_MACHINE, "The machine type, for messages."),
            "cpu": {**quantity(), "description": "vCPUs, for example 95400m."},
            "memory": {**quantity(), "description": "Memory, for example 1100Gi."},
            "gpus": gpus(),
            "efa": adapters(),
            "pods": {
                "type": "integer",
                "format": "int32",
                "minimum": 1,
                "maximum": MOST_PODS,
                "description": "The maximum number of pods.",
            },
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


def gpus() -> Json:
    """Return the schema of a number of GPUs; the default is none."""
    return {"type": "integer", "format": "int32", "minimum": 0, "maximum": MOST_GPUS}


def adapters() -> Json:
    """Return the schema of a number of Elastic Fabric Adapters; the default is none."""
    return {"type": "integer", "format": "int32", "minimum": 0, "maximum": MOST_ADAPTERS}


def quantity() -> Json:
    """Return the schema of a Kubernetes quantity."""
    return {"type": "string", "maxLength": LONGEST_AMOUNT, "pattern": "^[0-9]+(m|[KMGT]i?)?$"}


def price(description: str) -> Json:
    """Return the schema of a price."""
    return {
        "type": "number",
        "format": "double",
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": HIGHEST_PRICE,
        "description": description,
    }


def tier_schema() -> Json:
    """Return the schema of one tier.

    It names no clusters: a preview asks the API server, which has the schema of the last update, about the tiers of the next one.
    """
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
                "description": "How many failures a job may have on the tier before it moves on; -1 means unlimited.",
            },
            "procurementTimeout": duration(
                "How long to wait for the tier's capacity, for example 45s, 15m or 1h30m."
            ),
            "price": price(
                "What one of the tier's nodes costs per hour, for example 9.83, in the same currency on all tiers."
            ),
            "maxPrice": price(
                "What one of the tier's nodes may cost per hour, for example 4.5: while they cost more, the tier has no capacity."
            ),
            "facts": facts_schema(),
            "cluster": {
                **DNS_LABEL,
                "description": "The cluster of the pool, if that is not the ladder's own: a copy of the job runs there.",
            },
            "exported": exported_schema(),
        },
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.exported) || has(self.cluster)",
                "message": "exported is about a tier in another cluster: remove it, or set cluster",
            },
            {
                "rule": "!has(self.price) || !has(self.maxPrice) || self.price <= self.maxPrice",
                "message": "a tier whose nodes cost more than its maxPrice has no capacity: raise maxPrice, or correct price",
            },
        ],
    }


def exported_schema() -> Json:
    """Return the schema of what the stack of another cluster says of the namespace, beside the facts of the pool."""
    return {
        "type": "object",
        "description": "Outputs of the cluster's stack, written by the program that reads them.",
        "required": ["stack"],
        "properties": {
            "stack": text(_LONGEST_ADDRESS, "The stack."),
            "ladder": {
                "type": "array",
                "maxItems": MOST_TIERS,
                "items": text(2 * _LONGEST_NAME + 1, "A pool."),
                "x-kubernetes-list-type": "atomic",
                "description": "The pools of the namespace's ladder there; missing without such a namespace.",
            },
            "checkpoints": text(
                _LONGEST_ADDRESS, "Where jobs in the namespace keep their checkpoints there."
            ),
            "reachesCheckpoints": {
                "type": "boolean",
                "description": "Whether the cluster's network leads to the checkpoints of the ladder's own cluster.",
            },
            "registry": text(
                _LONGEST_ADDRESS,
                "The end of the names of the only registries that the cluster's network leads to, where it is isolated.",
            ),
        },
    }


# The last tier, whose pool may have the name of a pool elsewhere.
_IS_LAST: Final = "(t.pool == self[self.size() - 1].pool && !has(t.cluster))"


def tiers_rules() -> list[Json]:
    """Return the rules over all tiers: jobs can reach the last tier, and no tier follows it."""
    return [
        {
            "rule": (
                "self.all(t, self.filter(other, other.pool == t.pool && "
                "has(other.cluster) == has(t.cluster) && (!has(t.cluster) || other.cluster == t.cluster)).size() == 1)"
            ),
            "message": "each pool may be in a ladder once: raise its maxFailures instead of repeating it",
        },
        {
            "rule": (
                f"self.all(t, {_IS_LAST} || "
                f"has(t.procurementTimeout) || (has(t.maxFailures) && t.maxFailures != {UNLIMITED}))"
            ),
            "message": (
                "every tier except the last needs a limit: set maxFailures to 0 or more, "
                "procurementTimeout, or both"
            ),
        },
        {
            "rule": (
                f"self.all(t, {_IS_LAST} || has(t.procurementTimeout) || "
                f"(has(t.facts) && t.facts.capacity == '{ON_DEMAND}'))"
            ),
            "message": f"{NEEDS_TIMEOUT}: {SET_TIMEOUT}",
        },
        {
            "rule": "self.all(t, !has(t.cluster) || has(t.procurementTimeout))",
            "message": f"{ELSEWHERE_NEEDS_TIMEOUT}: {SET_TIMEOUT}",
        },
        {
            "rule": (
                "!has(self[self.size() - 1].procurementTimeout) && (!has(self[self.size() - 1].maxFailures) || "
                f"self[self.size() - 1].maxFailures == {UNLIMITED})"
            ),
            "message": (
                "no tier follows the last one: remove its procurementTimeout and maxFailures, "
                "or set maxFailures: -1 to keep its jobs on spot indefinitely"
            ),
        },
        {
            "rule": "!has(self[self.size() - 1].maxPrice)",
            "message": "no tier follows the last one: remove its maxPrice, or add the tier that should follow",
        },
        {
            "rule": "!has(self[0].cluster) && !has(self[self.size() - 1].cluster)",
            "message": "the first and the last tier are in the ladder's own cluster: remove cluster, or move the tier between them",
        },
    ]
