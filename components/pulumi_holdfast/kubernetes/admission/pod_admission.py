"""Admission of pods: one MutatingAdmissionPolicy and binding for each admission rule of a cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.config.versions import version_problem
from pulumi_holdfast.kubernetes.admission.expressions import (
    ASKS_VARIABLE,
    GANG_VARIABLE,
    annotation_patch,
    gang_labels,
    has_limit,
    label_patch,
    mark_patch,
    matches_rule,
    one_zone_patch,
    removal_patch,
    toleration_patch,
)
from pulumi_holdfast.kubernetes.admission.rules import (
    AdmissionRule,
    AnnotationRule,
    LabelRule,
    OneZoneRule,
    TolerationRule,
)
from pulumi_holdfast.kubernetes.kubernetes_object import (
    admission_policy,
    in_training_namespaces,
    resource_rule,
)
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import TOLERATES


def policy_name(rule: AdmissionRule) -> str:
    """Return the name of the rule's policy and of its binding."""
    return f"training-{rule.name}-pods"


def policy_spec(rule: AdmissionRule) -> Json:
    """Return the specification of the rule's MutatingAdmissionPolicy.

    It matches pods on creation only; job objects have policies of their own. The API server reinvokes a
    policy after another one changed the pod (for example, added a selector) only if the policy's match
    conditions held the first time. So the policy has no match conditions; its patches contain the conditions
    instead.
    """
    mutations: list[JsonValue] = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}} for patch in patches(rule)
    ]
    return {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": in_training_namespaces(resource_rule("", "pods", on=["CREATE"], version="v1")),
        **variables(rule),
        "mutations": mutations,
    }


def policy_annotations(rule: AdmissionRule) -> Mapping[str, str]:
    """Return the annotation that describes the rule in JSON, for readers that cannot evaluate CEL."""
    if not isinstance(rule, TolerationRule):
        return {}
    selections: list[JsonValue] = [{"key": each.key, "values": [*each.values]} for each in rule.selections]
    told: Json = {"taint": rule.taint.as_taint(), "selections": selections, "resources": [*rule.resources]}
    return {TOLERATES: json.dumps(told, sort_keys=True)}


def _metadata(rule: AdmissionRule) -> Json:
    annotations = policy_annotations(rule)
    # The API server drops an empty map, which would be a change in each run.
    return {"name": policy_name(rule), **({"annotations": annotations} if annotations else {})}


def patches(rule: AdmissionRule) -> Sequence[str]:
    """Return the rule's JSON patches, in the order in which they are applied."""
    if isinstance(rule, AnnotationRule):
        return [annotation_patch(rule.annotation, rule.value)]
    if isinstance(rule, LabelRule):
        return [label_patch(rule.label, rule.value, service_account=rule.service_account)]
    if isinstance(rule, OneZoneRule):
        return [mark_patch(rule.label, rule.value), one_zone_patch(rule.label, rule.value)]
    return [toleration_patch(rule.taint), *map(removal_patch, rule.removed_annotations)]


def variables(rule: AdmissionRule) -> Json:
    """Return the variables that the rule's patches use."""
    if isinstance(rule, AnnotationRule | LabelRule):
        return {}
    if isinstance(rule, OneZoneRule):
        return {
            "variables": [
                {"name": ASKS_VARIABLE, "expression": has_limit(rule.resource)},
                {"name": GANG_VARIABLE, "expression": gang_labels()},
            ]
        }
    return {"variables": [{"name": ASKS_VARIABLE, "expression": matches_rule(rule)}]}


def binding_spec(rule: AdmissionRule) -> Json:
    """Return the specification of the rule's MutatingAdmissionPolicyBinding."""
    return {"policyName": policy_name(rule)}


class TrainingAdmission(ComponentResource):
    """Admission of pods in the training namespaces of one cluster (`holdfast:index:TrainingAdmission`).

    Creates a MutatingAdmissionPolicy and its binding for each rule, named `training-<rule>-pods`. They apply
    to pods that are created in namespaces with the label `holdfast.dev/training: "true"`.

    `kubernetes_version` is a minor version. Raises ConfigError if it is older than Kubernetes 1.36.
    """

    def __init__(
        self,
        name: str,
        opts: ResourceOptions | None = None,
        *,
        kubernetes_version: str,
        rules: Sequence[AdmissionRule],
    ) -> None:
        taints = [rule.taint for rule in rules if isinstance(rule, TolerationRule)]
        problem = version_problem("kubernetes_version", kubernetes_version, taints)
        if problem is not None:
            raise ConfigError([problem])
        super().__init__("holdfast:index:TrainingAdmission", name, None, opts)
        for rule in rules:
            admission_policy(
                f"{name}-{rule.name}",
                "MutatingAdmissionPolicy",
                _metadata(rule),
                policy_spec(rule),
                binding_spec(rule),
                self,
            )
        self.register_outputs({})
