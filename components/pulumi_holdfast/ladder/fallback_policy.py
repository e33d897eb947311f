"""The table of the fields of a FallbackPolicy, and how one is read.

Each field stands here once. From its row come the OpenAPI schema with which the API server validates ladders (with CEL, for
ladders that users apply themselves), what `parse_policy` reads, and the tables of docs/fallback.md. All lists and strings are
bounded: the API server estimates a rule's cost from the bounds and rejects a definition with an unbounded list.

The controller needs the facts of pools because an empty pool has no nodes. Each `up` writes them; a ladder that a user applies
may leave them out. The API server only stores the shapes; the policies and the stack's configuration check that each can fall
back. The status is a summary for users; the controller never reads it back.
"""

from __future__ import annotations

import math
from typing import Final, cast, get_args

from pulumi_holdfast.ladder.fields import (
    FLAG,
    LABEL_KEY,
    LABEL_VALUE,
    LONGEST_AMOUNT,
    LONGEST_NAME,
    NAME,
    QUANTITY_PATTERN,
    TIME,
    Field,
    Kind,
    ObjectKind,
    a_choice,
    a_duration,
    a_list,
    a_map,
    a_number,
    a_price,
    a_text,
    an_object,
    rule,
)
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import LADDER, POOL, CapacityType
from pulumi_holdfast.ladder.ladder import (
    HIGHEST_PRICE,
    MOST_FAILURES,
    MOST_TIERS,
    UNLIMITED,
    DeclaredFacts,
    Failures,
    Ladder,
    MachineResources,
    NoPolicy,
    Policy,
    Tier,
)
from pulumi_holdfast.ladder.ladder_rules import (
    GIVES_UP_LATE,
    RULES_OF_SETTINGS,
    RULES_OF_TIER,
    RULES_OF_TIERS,
    order_problems,
)
from pulumi_holdfast.ladder.machines import Architecture
from pulumi_holdfast.ladder.quantities import (
    CPU_ALLOWED,
    CPU_PATTERN,
    MEMORY_ALLOWED,
    MEMORY_PATTERN,
    parse_quantity,
)
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
from pulumi_holdfast.ladder.taints import Taint
from pulumi_holdfast.ladder.windows import CapacityWindow

MOST_LABELS = 16
MOST_TAINTS = 16
MOST_NODES = 10_000
MOST_PODS = 1_000
MOST_PROBLEMS = 16
_LONGEST_MACHINE = 63
_LONGEST_ADDRESS: Final = 512
_LONGEST_PARAGRAPH: Final = 1024

_EFFECT: Final = a_choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))
_GPUS: Final = a_number(0, MOST_GPUS)
_ADAPTERS: Final = a_number(0, MOST_ADAPTERS)
_CPU: Final = a_text(LONGEST_AMOUNT, pattern=CPU_PATTERN, allowed=CPU_ALLOWED)
_MEMORY: Final = a_text(LONGEST_AMOUNT, pattern=MEMORY_PATTERN, allowed=MEMORY_ALLOWED)
_QUANTITY: Final = a_text(
    LONGEST_AMOUNT, pattern=QUANTITY_PATTERN, allowed="a quantity such as 96 or 1152Gi", read=parse_quantity
)
_LIMIT: Final = a_number(UNLIMITED, MOST_FAILURES)
_PRICE: Final = a_price(HIGHEST_PRICE)
_COUNT: Final = a_number(0, None)
_PARAGRAPH: Final = a_text(_LONGEST_PARAGRAPH)
_DEVICES: Final = ObjectKind(
    schema={
        "type": "object",
        "maxProperties": MOST_DEVICES,
        "additionalProperties": {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            "maxLength": LONGEST_AMOUNT,
            "pattern": f"^[0-9]{{1,5}}$|{MEMORY_PATTERN}",
        },
    },
    allowed="an object of amounts",
)
_DEVICES_MEANING: Final = "pieces of devices, bytes of ephemeral-storage and huge pages."

WINDOW: Final = an_object(
    Field("begins", TIME, "When the capacity is there, for example 2026-12-01T11:30:00Z."),
    Field("ends", TIME, "By when jobs must have left, for example 2026-12-08T10:45:00Z."),
    made=CapacityWindow,
    rules=[
        rule(
            "!has(self.begins) || !has(self.ends) || self.begins < self.ends",
            "begins must be before ends: set the times of the reservation",
        )
    ],
)


def _taint(*, key: str, effect: str, value: str = "") -> Taint:
    return Taint(key=key, value=value, effect=effect)


TAINT: Final = an_object(
    Field("key", LABEL_KEY, is_required=True),
    Field("value", LABEL_VALUE),
    Field("effect", _EFFECT, is_required=True),
    made=_taint,
)


def _machine(*, cpu: float, memory: float, gpus: int = 0) -> MachineResources:
    return MachineResources(cpu=math.ceil(cpu * 1000), memory=math.ceil(memory), gpus=gpus)


#: What every machine of the pool has at least, before any reservation.
MACHINE: Final = an_object(
    Field("cpu", _QUANTITY, "vCPUs, for example 96.", is_required=True),
    Field("memory", _QUANTITY, "Memory, for example 1152Gi.", is_required=True),
    Field("gpus", _GPUS),
    made=_machine,
)

#: What a machine offers to pods, without system reservations and DaemonSets.
MACHINE_CAPACITY: Final = an_object(
    Field("name", a_text(_LONGEST_MACHINE), "The machine type, for messages.", is_required=True),
    Field("cpu", _QUANTITY, "vCPUs, for example 95400m.", is_required=True),
    Field("memory", _QUANTITY, "Memory, for example 1100Gi.", is_required=True),
    Field("gpus", _GPUS),
    Field("efa", _ADAPTERS),
    Field("pods", a_number(1, MOST_PODS), "The maximum number of pods."),
    Field("accelerator", a_text(_LONGEST_MACHINE), "The kind of its GPUs, for example a100."),
    Field("devices", _DEVICES, f"Other resources of the machine: {_DEVICES_MEANING}"),
    Field("allDevices", FLAG, "The machine has no devices but these."),
)

FACTS: Final = an_object(
    Field("capacity", a_choice(CapacityType), "The capacity type of the pool's nodes.", is_required=True),
    Field("labels", a_map(LABEL_VALUE, MOST_LABELS), "The labels of the pool's nodes."),
    Field(
        "labelValues",
        a_map(a_list(LABEL_VALUE, MOST_LABEL_VALUES, least=1), len(LISTED_LABELS)),
        "Labels that follow from the machine type, such as kubernetes.io/arch, and the zones: each node has one of the values.",
        is_read=False,
    ),
    Field(
        "taints",
        a_list(TAINT, MOST_TAINTS),
        "The taints of the pool's nodes, including those that the cloud adds.",
    ),
    Field("machine", MACHINE, "What the smallest machine of the pool has."),
    Field(
        "machines",
        a_list(MACHINE_CAPACITY, MOST_CAPACITIES),
        "What the pool's machines offer to pods, largest first, without machines that another one exceeds "
        "in every resource.",
        is_read=False,
    ),
    Field("maxNodes", a_number(1, MOST_NODES), "How many nodes the pool may have."),
    Field(
        "window",
        WINDOW,
        "When the pool has its reserved capacity. Jobs start there after it begins, and leave when it ends.",
    ),
    made=DeclaredFacts,
)

#: What the stack of another cluster says of the namespace, beside the facts of the pool.
EXPORTED: Final = an_object(
    Field("stack", a_text(_LONGEST_ADDRESS), "The stack.", is_required=True),
    Field(
        "ladder",
        a_list(
            Kind(
                schema={**a_text(2 * LONGEST_NAME + 1).schema, "description": "A pool."}, allowed="a string"
            ),
            MOST_TIERS,
        ),
        "The pools of the namespace's ladder there; missing without such a namespace.",
    ),
    Field(
        "checkpoints", a_text(_LONGEST_ADDRESS), "Where jobs in the namespace keep their checkpoints there."
    ),
    Field(
        "reachesCheckpoints",
        FLAG,
        "Whether the cluster's network leads to the checkpoints of the ladder's own cluster.",
    ),
    Field(
        "registry",
        a_text(_LONGEST_ADDRESS),
        "The end of the names of the only registries that the cluster's network leads to, where it is isolated.",
    ),
)

#: The fields of a tier that the configuration has too.
TIER_FIELDS: Final = (
    Field("pool", NAME, f"The pool, by its nodes' label {POOL}.", is_required=True),
    Field(
        "maxFailures",
        _LIMIT,
        "How many failures a job may have on the tier before it moves on; -1 means unlimited.",
    ),
    Field(
        "procurementTimeout",
        a_duration(),
        "How long to wait for the tier's capacity, for example 45s, 15m or 1h30m.",
    ),
    Field(
        "price",
        _PRICE,
        "What one of the tier's nodes costs per hour, for example 9.83, in the same currency on all tiers.",
    ),
    Field(
        "maxPrice",
        _PRICE,
        "What one of the tier's nodes may cost per hour, for example 4.5: while they cost more, the tier has no capacity.",
    ),
    Field(
        "cluster",
        NAME,
        "The cluster of the pool, if that is not the ladder's own: a copy of the job runs there.",
    ),
)

#: It names no clusters: a preview asks the API server, which has the schema of the last update, about the tiers of the next one.
TIER: Final = an_object(
    *TIER_FIELDS,
    Field("facts", FACTS, "Facts of the pool, written by the program that creates it."),
    Field(
        "exported",
        EXPORTED,
        "Outputs of the cluster's stack, written by the program that reads them.",
        is_read=False,
    ),
    made=Tier,
    rules=(
        rule(
            "!has(self.exported) || has(self.cluster)",
            "exported is about a tier in another cluster: remove it, or set cluster",
        ),
        *(each for found in RULES_OF_TIER for each in found.cel),
    ),
)

TOLERATION: Final = an_object(
    Field("key", Kind(schema={**LABEL_KEY.schema, "minLength": 0}, allowed="a string")),
    Field("operator", a_choice(("Equal", "Exists"))),
    Field("value", LABEL_VALUE),
    Field("effect", _EFFECT),
    rules=(
        rule(
            "(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",
            "a toleration without key tolerates every taint: set operator to Exists, or set key",
        ),
        rule(
            "!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
            "operator Exists takes no value: remove value, or set operator to Equal",
        ),
    ),
)


#: A shape: a gang of pods that run together, each with these requests.
SHAPE: Final = an_object(
    Field("name", NAME, "The name of the shape in reports.", is_required=True),
    Field("pods", a_number(1, WIDEST_GANG), "How many pods run together; default 1."),
    Field("cpu", _CPU, "CPUs of each pod, for example 48 or 500m; default 1."),
    Field("memory", _MEMORY, "Memory of each pod, for example 512Gi; default 2Gi."),
    Field("gpus", _GPUS, "GPUs of each pod; default 0."),
    Field("efa", _ADAPTERS, "Fabric adapters of each pod; default 0."),
    Field(
        "accelerator",
        a_text(LONGEST_ACCELERATOR, least=1),
        "The model of its GPUs, for example a100, a100-80gb, or nvidia-h100-80gb as Google Cloud spells it; default any.",
    ),
    Field("devices", _DEVICES, f"Other resources of each pod: {_DEVICES_MEANING}"),
    Field(
        "selector", a_map(LABEL_VALUE, MOST_SELECTED), "Node labels that the pods select, beside their pool."
    ),
    Field(
        "tolerations",
        a_list(TOLERATION, MOST_TOLERATIONS),
        "What the pods tolerate, beside what admission adds.",
    ),
    Field(
        "architectures",
        a_list(a_choice(get_args(Architecture)), len(get_args(Architecture)), kind="set"),
        "The architectures that the images run on; default not declared.",
    ),
    Field(
        "samePlacement",
        a_choice(Placement),
        "What all pods of the gang have in common: one zone, or one group of hosts in a zone.",
    ),
    rules=(
        rule(
            "!has(self.accelerator) || (has(self.gpus) && self.gpus > 0)",
            "accelerator needs gpus: set the number of GPUs of each pod, or remove accelerator",
        ),
        rule(
            f"!has(self.devices) || ![{', '.join(map(repr, DEVICE_FIELDS))}].exists(name, name in self.devices)",
            f"devices are resources without a field of their own: set {', '.join(DEVICE_FIELDS.values())} instead",
        ),
        rule(
            f"!has(self.selector) || ![{', '.join(map(repr, MOVED_LABELS))}].exists(key, key in self.selector)",
            "a move selects the pool and removes capacity types: remove these labels from selector",
        ),
    ),
)

#: How jobs move; the defaults are those of `Policy`.
SETTINGS: Final = (
    Field(
        "failures",
        a_choice(Failures),
        "What counts towards maxFailures: any failure (the default), or evictions only.",
    ),
    Field(
        "outageWindow",
        a_duration(),
        "Losses within this time of each other count as one failure, for example 5m.",
    ),
    Field(
        "giveUpAfter",
        a_duration(rules=GIVES_UP_LATE.cel),
        "How long a job may wait for capacity on the last tier before it is given up, for example 24h.",
    ),
    Field(
        "applicationFailures",
        _LIMIT,
        "How many application failures a job may have on the last tier before it is given up; -1 means unlimited.",
    ),
    Field(
        "failureWindow",
        a_duration(),
        "Failures older than this no longer count towards maxFailures, for example 24h. Default: all of a tier visit count.",
    ),
    Field(
        "returnAfter",
        a_duration(or_never=True),
        "How long a job stays on a tier before it tries a better one again, or never. Default: 1h.",
    ),
    Field(
        "holdTimeout",
        a_duration(),
        "How long to wait for capacity of the better tier before a job moves up, for example 10m.",
    ),
    Field(
        "deadline",
        a_duration(),
        "Time from a job's creation after which a failure leads directly to the last tier, without failback, "
        "for example 48h.",
    ),
    Field(
        "restartCost",
        a_duration(),
        "The longest time from the loss of a job's machines until it has its earlier progress again, for example 12m. "
        "Jobs with a deadline of their own keep enough time for it.",
    ),
    Field(
        "startTimeout",
        a_duration(),
        "How long scheduled pods may take to start before a warning, for example 30m.",
    ),
)

SPEC: Final = an_object(
    Field(
        "tiers",
        a_list(TIER, MOST_TIERS, least=1, rules=[each for found in RULES_OF_TIERS for each in found.cel]),
        "The tiers in the order in which they are tried. The last one is on-demand, unless its maxFailures is -1.",
        is_required=True,
    ),
    Field(
        "shapes",
        a_list(
            SHAPE,
            MOST_SHAPES,
            rules=[
                rule(
                    "self.all(s, self.filter(other, other.name == s.name).size() == 1)",
                    "each shape needs a unique name: rename one of the two, or remove it",
                )
            ],
        ),
        "The jobs that the namespace is for. The policies check that each of them can fall back.",
        is_read=False,
    ),
    *SETTINGS,
    made=Ladder,
    rules=[each for found in RULES_OF_SETTINGS for each in found.cel],
)

_TIME: Final = Kind(schema={"type": "string", "format": "date-time", "maxLength": 64}, allowed="a time")
_GENERATION: Final[Json] = {"type": "integer", "format": "int64"}

_TIER_STATUS: Final = an_object(
    Field(
        "pool",
        a_text(2 * LONGEST_NAME + 1),
        "The pool, with its cluster if that is another one.",
        is_required=True,
    ),
    Field("jobs", _COUNT, "How many jobs are on the tier."),
    Field("waiting", _COUNT, "How many of them wait for its capacity."),
    Field(
        "nodeHours",
        _COUNT,
        "The hours of nodes that the unfinished jobs of the ladder have used of the tier.",
    ),
    Field(
        "cost",
        a_text(32),
        "What those nodes have cost, in the currency of the prices; empty without a price.",
    ),
)

# As Kubernetes defines conditions.
_CONDITION: Final = an_object(
    Field("type", a_text(316), "The condition.", is_required=True),
    Field("status", a_choice(("True", "False", "Unknown")), is_required=True),
    Field("lastTransitionTime", _TIME, is_required=True),
    Field("reason", _PARAGRAPH, "Why, in one word.", is_required=True),
    Field("message", _PARAGRAPH, "What is wrong, and the fix.", is_required=True),
    Field("observedGeneration", Kind(schema={**_GENERATION, "minimum": 0}, allowed="a number")),
)

STATUS: Final = an_object(
    Field("observedGeneration", Kind(schema=_GENERATION, allowed="a number")),
    Field("summary", a_text(512), "A summary of the namespace's jobs."),
    Field("jobs", _COUNT, "How many unfinished jobs follow the ladder."),
    Field("moving", _COUNT, "How many of them are between two tiers."),
    Field("tiers", a_list(_TIER_STATUS, MOST_TIERS, kind="map", key="pool")),
    Field(
        "problems",
        a_list(
            Kind(
                schema={**_PARAGRAPH.schema, "description": "What is wrong, and the fix."}, allowed="a string"
            ),
            MOST_PROBLEMS,
        ),
        "Why the ladder cannot be followed as it is.",
    ),
    Field(
        "conditions",
        a_list(_CONDITION, 8, kind="map", key="type"),
        "Ready: the controller follows the ladder.",
    ),
)

POLICY_SCHEMA: Final[Json] = {
    **an_object(
        Field("spec", SPEC, is_required=True),
        Field("status", STATUS),
        rules=[
            rule(
                f"self.metadata.name == '{LADDER}'",
                f"the only FallbackPolicy of a namespace is named {LADDER}: rename it",
            )
        ],
    ).schema,
    "description": "The ladder that jobs in a training namespace move down when spot capacity fails.",
}


def parse_policy(policy: Json | None) -> Policy | NoPolicy:
    """Parse the object; None for a namespace without one. The NoPolicy has its problems as texts."""
    if policy is None:
        return NoPolicy()
    spec = policy.get("spec")
    given: JsonValue = {} if spec is None else spec
    problems = [*SPEC.problems(given, "spec")]
    if not problems:
        ladder = cast("Ladder", SPEC.read(given))
        problems = [*order_problems(ladder, "spec.tiers")]
        if not problems:
            return ladder.with_defaults()
    return NoPolicy(problems=tuple(map(str, problems)))
