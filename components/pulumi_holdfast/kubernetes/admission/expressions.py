"""CEL expressions over a pod that is created, or over a pod template, as Python strings.

All expressions use optional field selection (`.?`): an expression that fails on a pod rejects that pod
(`failurePolicy: Fail`).
"""

from __future__ import annotations

import json
from string import Formatter
from typing import TYPE_CHECKING, Literal, TypeAlias

from pulumi_holdfast.ladder.labels import OF_LADDER, ZONE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulumi_holdfast.kubernetes.admission.rules import NodeSelection, TolerationRule
    from pulumi_holdfast.ladder.reachability.messages import MessageTemplate
    from pulumi_holdfast.ladder.taints import Taint

_Marks: TypeAlias = Literal["labels", "annotations"]

#: The pod's own specification.
POD = "object.spec"
#: The policy variable that holds the result of `asks`.
ASKS_VARIABLE = "asks"
ASKS = f"variables.{ASKS_VARIABLE}"
#: Whether the request creates the object.
CREATES = 'request.operation == "CREATE"'
TOLERATIONS = "object.spec.?tolerations.orValue([])"


def text(value: str) -> str:
    """Return a string literal."""
    return json.dumps(value)


def texts(values: Iterable[str]) -> str:
    """Return a list literal of strings."""
    return json.dumps(list(values))


def fill_template(template: str, **values: str) -> str:
    """Return a message template as an expression; `values` are expressions for strings by their placeholder.

    Raises KeyError for a placeholder without an expression.
    """
    parts: list[str] = []
    for literal, name, _, _ in Formatter().parse(template):
        if literal:
            parts.append(text(literal))
        if name is not None:
            parts.append(f"({values[name]})")
    return f"({' + '.join(parts)})"


def fill_sentence(words: MessageTemplate, **values: str) -> str:
    """Return a reason with its fix, filled."""
    return fill_template(words.sentence, **values)


def matches_rule(rule: TolerationRule) -> str:
    """Return whether the pod selects or needs the nodes of the rule, by any selection or resource."""
    ways = [
        *(selects_by_label(selection) for selection in rule.selections),
        *(selects_by_affinity(selection) for selection in rule.selections),
        *(has_limit(resource) for resource in rule.resources),
    ]
    return " || ".join(ways)


def affinity_terms(spec: str) -> str:
    """Return the terms of the required node affinity of a pod specification."""
    required = f"{spec}.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution"
    return f"{required}.?nodeSelectorTerms.orValue([])"


def selects_by_label(selection: NodeSelection, spec: str = POD) -> str:
    """Return whether the node selector of a pod specification names a value of the selection."""
    return f'{spec}.?nodeSelector[?{text(selection.key)}].orValue("") in {texts(selection.values)}'


def selects_by_affinity(selection: NodeSelection, spec: str = POD) -> str:
    """Return whether a required node affinity names a value of the selection."""
    named = expression_selects(selection, "e")
    return f"{affinity_terms(spec)}.exists(t, t.?matchExpressions.orValue([]).exists(e, {named}))"


def expression_selects(selection: NodeSelection, expression: str) -> str:
    """Return whether one match expression of a node affinity names a value of the selection.

    The one that keeps a pod on the pools of its ladder names all of them and selects none.
    """
    values = f"{expression}.?values.orValue([])"
    return (
        f'{expression}.key == {text(selection.key)} && {expression}.operator == "In" && '
        f"{values}.exists(v, v in {texts(selection.values)}) && !({text(OF_LADDER)} in {values})"
    )


def has_limit(resource: str, spec: str = POD) -> str:
    """Return whether a container of a pod specification has a limit above zero for the resource.

    Limits are enough: the API rejects an extended resource whose request differs from its limit. In a
    template the quantity may be a number instead of a string.
    """
    containers = f"({spec}.?containers.orValue([]) + {spec}.?initContainers.orValue([]))"
    # Without `dyn` the type checker infers a string for every quantity, because the default is a string.
    amount = f'quantity(string(c.?resources.?limits[?{text(resource)}].orValue(dyn("0"))))'
    return f'{containers}.exists(c, {amount}.isGreaterThan(quantity("0")))'


def tolerates(taint: Taint) -> str:
    """Return whether the pod already tolerates the taint, by the scheduler's rules."""
    effect = f't.?effect.orValue("") in ["", {text(taint.effect)}]'
    key = f't.?key.orValue("") in ["", {text(taint.key)}]'
    value = f't.?operator.orValue("") == "Exists" || t.?value.orValue("") == {text(taint.value)}'
    return f"{TOLERATIONS}.exists(t, {effect} && {key} && ({value}))"


def toleration_patch(taint: Taint) -> str:
    """Return the patch that adds the toleration to a pod that needs it and does not have it.

    The condition matters because a reinvoked policy sees its own earlier patch. An apply configuration is not
    possible: tolerations are an atomic list, which apply configurations cannot change.
    """
    toleration = (
        f'Object.spec.tolerations{{key: {text(taint.key)}, operator: "Equal", '
        f"value: {text(taint.value)}, effect: {text(taint.effect)}}}"
    )
    append = f'[JSONPatch{{op: "add", path: "/spec/tolerations/-", value: {toleration}}}]'
    create = f'[JSONPatch{{op: "add", path: "/spec/tolerations", value: [{toleration}]}}]'
    return f"!{ASKS} || {tolerates(taint)} ? [] : has(object.spec.tolerations) ? {append} : {create}"


def annotation_patch(annotation: str, value: str) -> str:
    """Return the patch that adds an annotation to a pod that does not have it."""
    return f"{_has('annotations', annotation)} ? [] : {_addition('annotations', annotation, value)}"


def label_patch(label: str, value: str, *, service_account: str) -> str:
    """Return the patch that adds a label to a pod of a service account that does not have it."""
    others = f'object.spec.?serviceAccountName.orValue("") != {text(service_account)}'
    return f"{others} || {_has('labels', label)} ? [] : {_addition('labels', label, value)}"


def removal_patch(annotation: str) -> str:
    """Return the patch that removes an annotation from a pod that matches the rule."""
    path = _path("annotations", annotation)
    return f'{ASKS} && {_has("annotations", annotation)} ? [JSONPatch{{op: "remove", path: {path}}}] : []'


#: The labels of a job's pods by the kind of job, the outermost first: a JobSet's pods are also those of a Job,
#: and their attempt is part of the gang's identity, because a restarted gang may run in another zone.
_GANGS = (
    ("jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/restart-attempt"),
    ("ray.io/cluster",),
    ("batch.kubernetes.io/job-name",),
)
#: The policy variable that holds the keys of the labels that identify the pod's gang; empty for a lone pod.
GANG_VARIABLE = "gang"


def gang_labels() -> str:
    """Return the keys of the pod's labels that identify its gang."""
    labels = "object.metadata.?labels.orValue({})"
    kinds = "".join(
        f"{text(keys[0])} in {labels} ? {texts(keys)}.filter(k, k in {labels}) : " for keys in _GANGS
    )
    return f"{kinds}[]"


def mark_patch(label: str, value: str) -> str:
    """Return the patch that labels a pod of a gang that needs one zone."""
    return f"{_needs_no_zone()} || {_has('labels', label)} ? [] : {_addition('labels', label, value)}"


def one_zone_patch(label: str, value: str) -> str:
    """Return the patch that lets a pod run only in the zone of the gang's other pods with the label.

    The gang's first pod may run anywhere, because it matches its own affinity.
    """
    affinity = "object.spec.?affinity"
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    own = f"{affinity}.?podAffinity.?{required}"
    mine = '{"key": dyn(k), "operator": dyn("In"), "values": dyn([object.metadata.labels[k]])}'
    mark = f'{{"key": dyn({text(label)}), "operator": dyn("In"), "values": dyn([{text(value)}])}}'
    selector = f'{{"matchExpressions": variables.{GANG_VARIABLE}.map(k, {mine}) + [{mark}]}}'
    term = f'{{"topologyKey": dyn({text(ZONE)}), "labelSelector": dyn({selector})}}'
    terms = f'{{"{required}": [{term}]}}'
    places = (
        (f"!{affinity}.hasValue()", "/spec/affinity", f'{{"podAffinity": {terms}}}'),
        (f"!{affinity}.?podAffinity.hasValue()", "/spec/affinity/podAffinity", terms),
        (f"!{own}.hasValue()", f"/spec/affinity/podAffinity/{required}", f"[{term}]"),
        ("true", f"/spec/affinity/podAffinity/{required}/-", term),
    )
    patch = "".join(
        f'{condition} ? [JSONPatch{{op: "add", path: {text(path)}, value: {added}}}] : '
        for condition, path, added in places
    )
    has_zone = f"{own}.orValue([]).exists(t, t.topologyKey == {text(ZONE)})"
    return f"{_needs_no_zone()} || {has_zone} ? [] : {patch}[]"


def _needs_no_zone() -> str:
    return f"!{ASKS} || size(variables.{GANG_VARIABLE}) == 0"


def _addition(among: _Marks, key: str, value: str) -> str:
    append = f'[JSONPatch{{op: "add", path: {_path(among, key)}, value: {text(value)}}}]'
    pair = f"{{{text(key)}: {text(value)}}}"
    create = f'[JSONPatch{{op: "add", path: "/metadata/{among}", value: {pair}}}]'
    return f"has(object.metadata.{among}) ? {append} : {create}"


def _has(among: _Marks, key: str) -> str:
    return f"object.metadata.?{among}[?{text(key)}].hasValue()"


def _path(among: _Marks, key: str) -> str:
    return f'"/metadata/{among}/" + jsonpatch.escapeKey({text(key)})'
