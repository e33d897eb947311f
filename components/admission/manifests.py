"""The admission policies of a cluster as Kubernetes objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.admission.expressions import (
    ASKS_VARIABLE,
    annotation_patch,
    asks,
    removal_patch,
    toleration_patch,
)
from components.admission.rules import AnnotationRule
from scheduling.labels import TRAINING, TRAINING_VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.admission.rules import AdmissionRule
    from scheduling.json import Json, JsonValue


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


def patches(rule: AdmissionRule) -> Sequence[str]:
    """Return what the rule does to a pod, one patch after the other."""
    if isinstance(rule, AnnotationRule):
        return [annotation_patch(rule.annotation, rule.value)]
    return [toleration_patch(rule.taint), *map(removal_patch, rule.removed_annotations)]


def variables(rule: AdmissionRule) -> Json:
    """Return what the patches of a rule refer to by name."""
    if isinstance(rule, AnnotationRule):
        return {}
    return {"variables": [{"name": ASKS_VARIABLE, "expression": asks(rule)}]}


def binding_spec(rule: AdmissionRule) -> Json:
    """Return the specification of the binding that puts the rule's policy into force."""
    return {"policyName": policy_name(rule)}
