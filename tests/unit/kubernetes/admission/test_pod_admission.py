"""What `TrainingAdmission` registers, and its CEL expressions."""

import json

import pytest

from pulumi_holdfast.controller.kube.objects import annotations_of, name_of
from pulumi_holdfast.kubernetes.admission.expressions import (
    has_limit,
    label_patch,
    selects_by_label,
    text,
    toleration_patch,
)
from pulumi_holdfast.kubernetes.admission.pod_admission import TrainingAdmission, policy_spec
from pulumi_holdfast.kubernetes.admission.rules import NodeSelection
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.labels import TOLERATES
from pulumi_holdfast.ladder.taints import Taint
from tests.support.builders.training_jobs import RULES, SPOT_RULE
from tests.support.fakes.pulumi_engine import Recording, record

POLICY = "admissionregistration.k8s.io/v1:MutatingAdmissionPolicy"
BINDING = "admissionregistration.k8s.io/v1:MutatingAdmissionPolicyBinding"


def recorded(version: str = "1.36") -> Recording:

    return record(lambda: TrainingAdmission("admission", kubernetes_version=version, rules=RULES))


def test_each_rule_has_a_policy_as_rendered_before_its_binding() -> None:
    admission = recorded()
    for kind in (POLICY, BINDING):
        names = {name_of(resource.inputs) for resource in admission.of(kind)}
        assert names == {"training-spot-pods", "training-gpu-pods"}, f"one {kind} for each rule"
    policy = admission.one(POLICY, "admission-spot")
    assert policy.inputs["spec"] == policy_spec(SPOT_RULE), "the SDK must keep the API's field names"
    described = json.loads(str(annotations_of(policy.inputs)[TOLERATES]))
    assert described["taint"] == SPOT_RULE.taint.as_taint(), "policies that cannot evaluate CEL read it"
    binding = admission.one(BINDING, "admission-spot-binding")
    assert "admission-spot" in binding.depends_on, "a binding without its policy would let every pod pass"
    assert binding.inputs["spec"] == {"policyName": "training-spot-pods"}


def test_policies_match_only_pod_creation_in_training_namespaces_without_conditions() -> None:
    for rule in RULES:
        constraints = policy_spec(rule)["matchConstraints"]
        assert constraints == {
            "namespaceSelector": {"matchLabels": {"holdfast.dev/training": "true"}},
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ],
        }
        assert "matchConditions" not in policy_spec(rule)
        assert policy_spec(rule)["failurePolicy"] == "Fail", "an unchanged pod would never be scheduled"


def test_an_older_cluster_is_rejected_before_anything_is_registered() -> None:
    with pytest.raises(ConfigError, match=r"1\.36 or later"):
        recorded("1.35")


def test_expressions_escape_values_and_match_exactly_these() -> None:
    assert text('a" || true || "') == r'"a\" || true || \""', "a value must not become an expression"
    expression = selects_by_label(NodeSelection(key="example.com/market", values=("spot", "preemptible")))
    assert expression == (
        'object.spec.?nodeSelector[?"example.com/market"].orValue("") in ["spot", "preemptible"]'
    )
    assert "object.spec.?initContainers" in has_limit("nvidia.com/gpu")


def test_patches_are_limited_to_their_taint_or_service_account() -> None:
    patch = toleration_patch(Taint(key="cloud.google.com/gke-spot", value="true"))
    assert (
        'Object.spec.tolerations{key: "cloud.google.com/gke-spot", operator: "Equal", '
        'value: "true", effect: "NoSchedule"}'
    ) in patch
    patch = label_patch("azure.workload.identity/use", "true", service_account="trainer")
    assert patch.startswith('object.spec.?serviceAccountName.orValue("") != "trainer" || ')
    assert 'jsonpatch.escapeKey("azure.workload.identity/use")' in patch, "an unescaped slash would be a path"
