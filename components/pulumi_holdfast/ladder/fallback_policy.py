"""The fields of a FallbackPolicy, each once: name, type, bounds, meaning, and the rules over several of them.

This one table is the OpenAPI schema with which the API server validates ladders (with CEL, for ladders that users apply
themselves), and `field_problems` validates with the same table what the controller reads. `pool_and_job_fields` has the
fields that the program writes of its pools and jobs. Rules that need the pools,
such as that the last one is on-demand, are in `ladder`. All lists and strings are bounded: the API server estimates a
rule's cost from the bounds and rejects a definition with an unbounded list. The status is a summary for users; the
controller never reads it back.
"""

from __future__ import annotations

from typing import Final

from pulumi_holdfast.ladder.field_kinds import (
    DNS_LABEL,
    LONGEST_NAME,
    duration,
    duration_or_never,
    integer,
    listed,
    price,
    rule,
    text,
)
from pulumi_holdfast.ladder.json import Json, sequence
from pulumi_holdfast.ladder.labels import LADDER, ON_DEMAND, POOL
from pulumi_holdfast.ladder.ladder import (
    ELSEWHERE_NEEDS_TIMEOUT,
    GIVES_UP_TOO_SOON,
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
from pulumi_holdfast.ladder.pool_and_job_fields import facts_schema, shapes_schema
from pulumi_holdfast.ladder.quantities import format_duration

_LONGEST_ADDRESS: Final = 512


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
                text(2 * LONGEST_NAME + 1, "A pool."),
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
