"""The fields of a FallbackPolicy, each once: name, type, bounds, meaning, and the rules over several of them.

This one table is the OpenAPI schema with which the API server validates ladders (with CEL, for ladders that users apply
themselves), and `field_problems` validates with the same table what the controller reads. Rules that need the pools,
such as that the last one is on-demand, are in `ladder`. All lists and strings are bounded: the API server estimates a
rule's cost from the bounds and rejects a definition with an unbounded list. The status is a summary for users; the
controller never reads it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, get_args

from holdfast.scheduling.errors import Problem
from holdfast.scheduling.json import Json, JsonValue, mapping, sequence
from holdfast.scheduling.labels import LADDER, ON_DEMAND, POOL, CapacityType
from holdfast.scheduling.ladder import (
    ELSEWHERE_NEEDS_TIMEOUT,
    GIVES_UP_TOO_SOON,
    HIGHEST_PRICE,
    LEAST_GIVE_UP_AFTER,
    MOST_FAILURES,
    MOST_TIERS,
    MOST_TIMED_FAILURES,
    NEEDS_TIMEOUT,
    SET_GIVE_UP_AFTER,
    SET_TIMEOUT,
    UNLIMITED,
    Failures,
)
from holdfast.scheduling.machines import Architecture
from holdfast.scheduling.quantities import (
    CPU_PATTERN,
    DURATION_ALLOWED,
    DURATION_PATTERN,
    LONGEST_DURATION,
    MEMORY_PATTERN,
    DurationError,
    format_duration,
    parse_duration,
)
from holdfast.scheduling.reachability.machine_capacity import (
    LISTED_LABELS,
    MOST_CAPACITIES,
    MOST_LABEL_VALUES,
)
from holdfast.scheduling.reachability.shape import (
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
from holdfast.scheduling.windows import TIME_ALLOWED, TIME_PATTERN, parse_time


def integer(least: int, most: int | None, description: str = "") -> Json:
    """Return the schema of an integer within limits."""
    return {
        "type": "integer",
        "format": "int32",
        "minimum": least,
        **({} if most is None else {"maximum": most}),
        **({"description": description} if description else {}),
    }


def listed(items: Json, most: int, description: str, kind: str = "atomic") -> Json:
    """Return the schema of a list."""
    return {
        "type": "array",
        "maxItems": most,
        "items": items,
        "x-kubernetes-list-type": kind,
        "description": description,
    }


def rule(cel: str, message: str) -> Json:
    """Return a rule: what must hold, and what is wrong otherwise with the fix."""
    return {"rule": cel, "message": message}


_MAX_DURATION_LENGTH: Final = len("999999h999999m999999s")


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
    bounds = duration_rule()
    never = rule(f"self == 'never' || ({bounds['rule']})", f"{bounds['message']}, or never")
    return {
        **duration(description),
        "pattern": f"^never$|{DURATION_PATTERN}",
        "x-kubernetes-validations": [never],
    }


def duration_rule() -> Json:
    """Return the rule that bounds a duration. The pattern alone would allow `0m` and the empty string."""
    longest = format_duration(LONGEST_DURATION)
    return rule(
        f"self != '' && duration(self) >= duration('1s') && duration(self) <= duration('{longest}')",
        f"must be a duration with units from 1s to {longest}, such as 45s, 15m or 1h30m",
    )


#: A number of CPUs or bytes.
QUANTITY_PATTERN: Final = r"^[0-9]+(m|[KMGT]i?)?$"
NAME_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_LONGEST_NAME: Final = 63
LONGEST_AMOUNT: Final = 20
#: A prefix of 253 characters, a slash and a name.
_LONGEST_KEY: Final = 253 + 1 + _LONGEST_NAME

DNS_LABEL: Final[Json] = {
    "type": "string",
    "minLength": 1,
    "maxLength": _LONGEST_NAME,
    "pattern": NAME_PATTERN,
}

LABEL_KEY: Final[Json] = {"type": "string", "minLength": 1, "maxLength": _LONGEST_KEY}

LABEL_VALUE: Final[Json] = {"type": "string", "maxLength": _LONGEST_NAME}


def text(longest: int, description: str) -> Json:
    """Return the schema of a string for readers."""
    return {"type": "string", "maxLength": longest, "description": description}


MOST_LABELS = 16
MOST_TAINTS = 16
MOST_NODES = 10_000
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
            "begins": _time("When the capacity is there, for example 2026-12-01T11:30:00Z."),
            "ends": _time("By when jobs must have left, for example 2026-12-08T10:45:00Z."),
        },
        "x-kubernetes-validations": [
            rule(
                "!has(self.begins) || !has(self.ends) || self.begins < self.ends",
                "begins must be before ends: set the times of the reservation",
            )
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
            "maxFailures": integer(
                UNLIMITED,
                MOST_FAILURES,
                "How many failures a job may have on the tier before it moves on; -1 means unlimited.",
            ),
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
            rule(
                "!has(self.exported) || has(self.cluster)",
                "exported is about a tier in another cluster: remove it, or set cluster",
            ),
            rule(
                "!has(self.price) || !has(self.maxPrice) || self.price <= self.maxPrice",
                "a tier whose nodes cost more than its maxPrice has no capacity: raise maxPrice, or correct price",
            ),
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
            "ladder": listed(
                text(2 * _LONGEST_NAME + 1, "A pool."),
                MOST_TIERS,
                "The pools of the namespace's ladder there; missing without such a namespace.",
            ),
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
        rule(
            (
                "self.all(t, self.filter(other, other.pool == t.pool && "
                "has(other.cluster) == has(t.cluster) && (!has(t.cluster) || other.cluster == t.cluster)).size() == 1)"
            ),
            "each pool may be in a ladder once: raise its maxFailures instead of repeating it",
        ),
        rule(
            (
                f"self.all(t, {_IS_LAST} || "
                f"has(t.procurementTimeout) || (has(t.maxFailures) && t.maxFailures != {UNLIMITED}))"
            ),
            (
                "every tier except the last needs a limit: set maxFailures to 0 or more, "
                "procurementTimeout, or both"
            ),
        ),
        rule(
            (
                f"self.all(t, {_IS_LAST} || has(t.procurementTimeout) || "
                f"(has(t.facts) && t.facts.capacity == '{ON_DEMAND}'))"
            ),
            f"{NEEDS_TIMEOUT}: {SET_TIMEOUT}",
        ),
        rule(
            "self.all(t, !has(t.cluster) || has(t.procurementTimeout))",
            f"{ELSEWHERE_NEEDS_TIMEOUT}: {SET_TIMEOUT}",
        ),
        rule(
            (
                "!has(self[self.size() - 1].procurementTimeout) && (!has(self[self.size() - 1].maxFailures) || "
                f"self[self.size() - 1].maxFailures == {UNLIMITED})"
            ),
            (
                "no tier follows the last one: remove its procurementTimeout and maxFailures, "
                "or set maxFailures: -1 to keep its jobs on spot indefinitely"
            ),
        ),
        rule(
            "!has(self[self.size() - 1].maxPrice)",
            "no tier follows the last one: remove its maxPrice, or add the tier that should follow",
        ),
        rule(
            "!has(self[0].cluster) && !has(self[self.size() - 1].cluster)",
            "the first and the last tier are in the ladder's own cluster: remove cluster, or move the tier between them",
        ),
    ]


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


def amount(pattern: str, description: str) -> Json:
    """Return the schema of a quantity with the same pattern as in the configuration."""
    return {"type": "string", "maxLength": LONGEST_AMOUNT, "pattern": pattern, "description": description}


MOST_PROBLEMS = 16


def status_schema() -> Json:
    """Return the schema of the status."""
    return {
        "type": "object",
        "properties": {
            "observedGeneration": {"type": "integer", "format": "int64"},
            "summary": text(512, "A summary of the namespace's jobs."),
            "jobs": integer(0, None, "How many unfinished jobs follow the ladder."),
            "moving": integer(0, None, "How many of them are between two tiers."),
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
                        "jobs": integer(0, None, "How many jobs are on the tier."),
                        "waiting": integer(0, None, "How many of them wait for its capacity."),
                        "nodeHours": integer(
                            0,
                            None,
                            "The hours of nodes that the unfinished jobs of the ladder have used of the tier.",
                        ),
                        "cost": text(
                            32,
                            "What those nodes have cost, in the currency of the prices; empty without a price.",
                        ),
                    },
                },
            },
            "problems": listed(
                text(1024, "What is wrong, and the fix."),
                MOST_PROBLEMS,
                "Why the ladder cannot be followed as it is.",
            ),
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


def policy_schema() -> Json:
    """Return the schema of a FallbackPolicy."""
    return {
        "type": "object",
        "description": "The ladder that jobs in a training namespace move down when spot capacity fails.",
        "required": ["spec"],
        "properties": {"spec": spec_schema(), "status": status_schema()},
        "x-kubernetes-validations": [
            rule(
                f"self.metadata.name == '{LADDER}'",
                f"the only FallbackPolicy of a namespace is named {LADDER}: rename it",
            )
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
        "applicationFailures": integer(
            UNLIMITED,
            MOST_FAILURES,
            (
                "How many application failures a job may have on the last tier before it is given up; "
                "-1 means unlimited."
            ),
        ),
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
    longer = rule(
        f"self == '' || duration(self) >= duration('{least}')", f"{GIVES_UP_TOO_SOON}: {SET_GIVE_UP_AFTER}"
    )
    return {**schema, "x-kubernetes-validations": [*sequence(schema["x-kubernetes-validations"]), longer]}


def move_setting_rules() -> list[Json]:
    """Return the rules that reject settings without an effect."""
    return [
        rule(
            "!has(self.returnAfter) || self.returnAfter == 'never' || self.tiers.size() > 1",
            "returnAfter needs a ladder of two or more tiers: remove it or add a tier",
        ),
        rule(
            (
                "!has(self.holdTimeout) || (self.tiers.size() > 1 && "
                "(!has(self.returnAfter) || self.returnAfter != 'never'))"
            ),
            "holdTimeout applies to failback, which this ladder has not: set returnAfter to a time or remove holdTimeout",
        ),
        rule(
            (
                "!has(self.failureWindow) || "
                f"self.tiers.all(t, !has(t.maxFailures) || t.maxFailures <= {MOST_TIMED_FAILURES})"
            ),
            f"failureWindow needs maxFailures of at most {MOST_TIMED_FAILURES}: lower them or remove failureWindow",
        ),
    ]


#: What a field may be, in words, by the pattern of its schema.
_IN_WORDS: Final[Mapping[JsonValue, str]] = {
    DURATION_PATTERN: DURATION_ALLOWED,
    f"^never$|{DURATION_PATTERN}": f"{DURATION_ALLOWED}; or never",
    TIME_PATTERN: TIME_ALLOWED,
    NAME_PATTERN: "a name of lower-case letters, digits and hyphens",
    QUANTITY_PATTERN: "a quantity such as 96 or 1152Gi",
}
#: Fields that admission, the policies and the command line read, and the controller does not.
_UNREAD: Final = frozenset({"shapes", "exported", "machines", "labelValues"})
# Longer values are cut when a problem quotes them.
_QUOTED: Final = 60


def field_problems(value: JsonValue, schema: Json, at: str) -> Iterator[Problem]:
    """Validate the fields that the controller reads; `at` is the path of the value.

    The API server has validated each object, by the definition of its own version: this finds what another version, or
    a document that no API server has seen, has instead. Unknown fields belong to a newer definition, and are ignored.
    """
    match schema["type"]:
        case "object" if isinstance(value, Mapping):
            yield from _object_problems(value, schema, at)
        case "array" if isinstance(value, Sequence) and not isinstance(value, str):
            for place, item in enumerate(value):
                yield from field_problems(item, mapping(schema["items"]), f"{at}[{place}]")
        case _ if not _is_allowed(value, schema):
            yield _problem(value, schema, at)
        case _:
            pass


def _object_problems(value: Json, schema: Json, at: str) -> Iterator[Problem]:
    properties = mapping(schema.get("properties"))
    for name in map(str, sequence(schema.get("required"))):
        if value.get(name) in (None, (), []):
            yield Problem(
                field=f"{at}.{name}",
                value=f"no {name}",
                allowed=_allowed(mapping(properties[name])),
                fix=f"Set {name}.",
            )
    for name in properties.keys() - _UNREAD if properties else ():
        if value.get(name) is not None:
            yield from field_problems(value[name], mapping(properties[name]), f"{at}.{name}")
    values = mapping(schema.get("additionalProperties"))
    for key, each in value.items() if values else ():
        yield from field_problems(each, values, f"{at}.{key}")


def _is_allowed(value: JsonValue, schema: Json) -> bool:
    if schema["type"] in {"integer", "number"}:
        least, most = schema.get("minimum"), schema.get("maximum")
        return (
            isinstance(value, int if schema["type"] == "integer" else int | float)
            and not isinstance(value, bool)
            and isinstance(least, int)
            and isinstance(most, int)
            and least <= value <= most
            and not (value == least and schema.get("exclusiveMinimum"))
        )
    if schema["type"] != "string" or not isinstance(value, str):
        return False
    longest, pattern = schema.get("maxLength"), str(schema.get("pattern", ""))
    if isinstance(longest, int) and len(value) > longest:
        return False
    if "enum" in schema:
        return value in sequence(schema["enum"])
    if pattern == TIME_PATTERN:
        return parse_time(value) is not None
    if pattern.endswith(DURATION_PATTERN) and value != "never":
        return _duration_fix(value) is None
    return not pattern or re.fullmatch(pattern, value, re.ASCII) is not None


def _duration_fix(text: str) -> str | None:
    try:
        parse_duration(text)
    except DurationError as error:
        return error.fix
    return None


def _allowed(schema: Json) -> str:
    if "enum" in schema:
        return " or ".join(map(str, sequence(schema["enum"])))
    if schema["type"] == "integer":
        return f"an integer from {schema['minimum']} to {schema['maximum']}"
    if schema["type"] == "number":
        return f"a number above {schema['minimum']}, up to {schema['maximum']}"
    words = {"object": "an object", "array": "a list", "string": "a string"}
    return _IN_WORDS.get(schema.get("pattern"), words[str(schema["type"])])


def _problem(value: JsonValue, schema: Json, at: str) -> Problem:
    quoted = f'"{value}"' if isinstance(value, str) else str(value)
    is_duration = str(schema.get("pattern", "")).endswith(DURATION_PATTERN)
    fix = _duration_fix(value) if is_duration and isinstance(value, str) else None
    return Problem(
        field=at,
        value=quoted if len(quoted) <= _QUOTED else f"{quoted[:_QUOTED]}…",
        allowed=_allowed(schema),
        fix=fix or "Set an allowed value, or remove the field.",
    )
