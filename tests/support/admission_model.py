"""What admission must make of a pod, told in Python instead of CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from holdfast.components.admission.rules import NodeSelection, TolerationRule
    from holdfast.scheduling.json import Json
    from holdfast.scheduling.taints import Taint


def tolerations_of(pod: Json) -> list[Json]:
    """The pod's tolerations, but for those the API server gives to every pod."""
    given = objects(obj(pod["spec"]).get("tolerations"))
    return [each for each in given if not str(each.get("key", "")).startswith("node.kubernetes.io/")]


def annotations_of(pod: Json) -> Json:
    """The pod's annotations."""
    return obj(obj(pod["metadata"]).get("annotations"))


def expected_tolerations(pod: Json, rules: Iterable[TolerationRule]) -> list[Json]:
    """The pod's own tolerations and, after them, those of the rules it asks by and does not tolerate yet."""
    expected = tolerations_of(pod)
    for rule in rules:
        if asks(pod, rule) and not any(tolerates(each, rule.taint) for each in expected):
            expected.append(rule.taint.as_toleration())
    return expected


def expected_annotations(pod: Json, rules: Iterable[TolerationRule]) -> Json:
    """The pod's own annotations, less those that the rules it asks by remove."""
    removed = {name for rule in rules if asks(pod, rule) for name in rule.removed_annotations}
    return {name: value for name, value in annotations_of(pod).items() if name not in removed}


def asks(pod: Json, rule: TolerationRule) -> bool:
    """Whether the pod asks for the rule's nodes."""
    spec = obj(pod["spec"])
    containers = [*objects(spec["containers"]), *objects(spec.get("initContainers"))]
    limits = [obj(obj(each.get("resources")).get("limits")) for each in containers]
    return any(names(spec, selection) for selection in rule.selections) or any(
        str(limit.get(resource, "0")) != "0" for limit in limits for resource in rule.resources
    )


def names(spec: Json, selection: NodeSelection) -> bool:
    """Whether a pod names a value of the selection, by selector or by required affinity."""
    if obj(spec.get("nodeSelector")).get(selection.key) in selection.values:
        return True
    return any(
        each["key"] == selection.key
        and each["operator"] == "In"
        and bool(set(selection.values) & set(cast("Sequence[str]", each["values"])))
        for each in required_expressions(spec)
    )


def required_expressions(spec: Json) -> Iterator[Json]:
    """Every expression on node labels in the required node affinity."""
    node = obj(obj(spec.get("affinity")).get("nodeAffinity"))
    required = obj(node.get("requiredDuringSchedulingIgnoredDuringExecution"))
    for term in objects(required.get("nodeSelectorTerms")):
        yield from objects(term.get("matchExpressions"))


def tolerates(toleration: Mapping[str, object], taint: Taint) -> bool:
    """Whether a toleration matches the taint, as Kubernetes documents it."""
    effect = toleration.get("effect", "")
    key = toleration.get("key", "")
    matches_value = toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.value
    return effect in {"", taint.effect} and key in {"", taint.key} and matches_value
