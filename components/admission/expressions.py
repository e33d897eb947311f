"""CEL, as text, over the pod that is being created.

Optional field selection (`.?`) everywhere: an expression that fails on a pod refuses that pod (`failurePolicy: Fail`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from components.admission.rules import NodeSelection, TolerationRule
    from scheduling.taints import Taint

AFFINITY_TERMS = (
    "object.spec.?affinity.?nodeAffinity"
    ".?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([])"
)
#: The policy's variable that holds `asks`.
ASKS_VARIABLE = "asks"
ASKS = f"variables.{ASKS_VARIABLE}"
CONTAINERS = "(object.spec.containers + object.spec.?initContainers.orValue([]))"
TOLERATIONS = "object.spec.?tolerations.orValue([])"


def text(value: str) -> str:
    """Return a string literal."""
    return json.dumps(value)


def texts(values: Iterable[str]) -> str:
    """Return a list literal of strings."""
    return json.dumps(list(values))


def asks(rule: TolerationRule) -> str:
    """Return whether the pod asks for the nodes of the rule, in any of the ways it knows."""
    ways = [
        *(selects(selection) for selection in rule.selections),
        *(names_in_affinity(selection) for selection in rule.selections),
        *(limits(resource) for resource in rule.resources),
    ]
    return " || ".join(ways)


def selects(selection: NodeSelection) -> str:
    """Return whether the pod's node selector names a value of the selection."""
    return f'object.spec.?nodeSelector[?{text(selection.key)}].orValue("") in {texts(selection.values)}'


def names_in_affinity(selection: NodeSelection) -> str:
    """Return whether a required node affinity names a value of the selection, among others or alone."""
    named = (
        f'e.key == {text(selection.key)} && e.operator == "In" && '
        f"e.?values.orValue([]).exists(v, v in {texts(selection.values)})"
    )
    return f"{AFFINITY_TERMS}.exists(t, t.?matchExpressions.orValue([]).exists(e, {named}))"


def limits(resource: str) -> str:
    """Return whether a container has some of the resource; `0` is none.

    Limits tell all: the API refuses an extended resource that is requested without an equal limit.
    """
    amount = f'quantity(c.?resources.?limits[?{text(resource)}].orValue("0"))'
    return f'{CONTAINERS}.exists(c, {amount}.isGreaterThan(quantity("0")))'


def tolerates(taint: Taint) -> str:
    """Return whether the pod tolerates the taint already, by the scheduler's own reading of tolerations."""
    effect = f't.?effect.orValue("") in ["", {text(taint.effect)}]'
    key = f't.?key.orValue("") in ["", {text(taint.key)}]'
    value = f't.?operator.orValue("") == "Exists" || t.?value.orValue("") == {text(taint.value)}'
    return f"{TOLERATIONS}.exists(t, {effect} && {key} && ({value}))"


def toleration_patch(taint: Taint) -> str:
    """Return the patch that adds the toleration to a pod that asks and has none that matches.

    It looks first, since a reinvoked policy meets its own work. An apply configuration would not do: tolerations are
    an atomic list, which it may not touch.
    """
    toleration = (
        f'Object.spec.tolerations{{key: {text(taint.key)}, operator: "Equal", '
        f"value: {text(taint.value)}, effect: {text(taint.effect)}}}"
    )
    append = f'[JSONPatch{{op: "add", path: "/spec/tolerations/-", value: {toleration}}}]'
    create = f'[JSONPatch{{op: "add", path: "/spec/tolerations", value: [{toleration}]}}]'
    return f"!{ASKS} || {tolerates(taint)} ? [] : has(object.spec.tolerations) ? {append} : {create}"


def annotation_patch(annotation: str, value: str) -> str:
    """Return the patch that adds an annotation to a pod without it."""
    path = f'"/metadata/annotations/" + jsonpatch.escapeKey({text(annotation)})'
    append = f'[JSONPatch{{op: "add", path: {path}, value: {text(value)}}}]'
    pair = f"{{{text(annotation)}: {text(value)}}}"
    create = f'[JSONPatch{{op: "add", path: "/metadata/annotations", value: {pair}}}]'
    present = f"object.metadata.?annotations[?{text(annotation)}].hasValue()"
    return f"{present} ? [] : has(object.metadata.annotations) ? {append} : {create}"


def removal_patch(annotation: str) -> str:
    """Return the patch that removes an annotation from a pod that asks."""
    path = f'"/metadata/annotations/" + jsonpatch.escapeKey({text(annotation)})'
    present = f"object.metadata.?annotations[?{text(annotation)}].hasValue()"
    return f'{ASKS} && {present} ? [JSONPatch{{op: "remove", path: {path}}}] : []'
