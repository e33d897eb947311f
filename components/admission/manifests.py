"""The admission policies of a cluster as Kubernetes objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holdfast.components.admission.expressions import (
    ASKS_VARIABLE,
    annotation_patch,
    asks,
    label_patch,
    removal_patch,
    toleration_patch,
)
from holdfast.components.admission.rules import AnnotationRule, LabelRule, TolerationRule
from holdfast.scheduling.labels import TOLERATES, TRAINING, TRAINING_VALUE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.components.admission.rules import AdmissionRule
    from holdfast.scheduling.json import Json, JsonValue


def policy_name(rule: AdmissionRule) -> str:
    """Return the name of the rule's policy and of its binding."""
    return f"training-{rule.name}-pods"


def policy_spec(rule: AdmissionRule) -> Json:
    """Return the specification of the rule's MutatingAdmissionPolicy.

    Pods alone, on creation alone: the job objects they come from keep what their authors wrote, and a policy on those
    can be added beside this one. It runs again when something after it gives a pod a selector, which the API server
    does only for policies whose match conditions held the first time: so it has none, and its patches ask instead.
    """
    mutations: list[JsonValue] = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}} for patch in patches(rule)
    ]
    return {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {TRAINING: TRAINING_VALUE}},
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ],
        },
        **variables(rule),
        "mutations": mutations,
    }


def annotations_of(rule: AdmissionRule) -> Mapping[str, str]:
    """Return what the rule's policy says of itself to whoever cannot read CEL: whom it lets tolerate what."""
    if not isinstance(rule, TolerationRule):
        return {}
    selections: list[JsonValue] = [{"key": each.key, "values": [*each.values]} for each in rule.selections]
    told: Json = {
        "taint": rule.taint.as_taint(),
        "selections": selections,
        "resources": [*rule.resources],
    }
    return {TOLERATES: json.dumps(told, sort_keys=True)}


def patches(rule: AdmissionRule) -> Sequence[str]:
    """Return what the rule does to a pod, one patch after the other."""
    if isinstance(rule, AnnotationRule):
        return [annotation_patch(rule.annotation, rule.value)]
    if isinstance(rule, LabelRule):
        return [label_patch(rule.label, rule.value, service_account=rule.service_account)]
    return [toleration_patch(rule.taint), *map(removal_patch, rule.removed_annotations)]


def variables(rule: AdmissionRule) -> Json:
    """Return what the patches of a rule refer to by name."""
    if isinstance(rule, AnnotationRule | LabelRule):
        return {}
    return {"variables": [{"name": ASKS_VARIABLE, "expression": asks(rule)}]}


def binding_spec(rule: AdmissionRule) -> Json:
    """Return the specification of the binding that puts the rule's policy into force."""
    return {"policyName": policy_name(rule)}
