"""What `TrainingAdmission` registers."""

from __future__ import annotations

import pytest

from holdfast.components.admission.pod_admission import TrainingAdmission, TrainingAdmissionArgs, policy_spec
from holdfast.scheduling.errors import ConfigError
from tests.support.builders.training_jobs import RULES, SPOT_RULE
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.json_objects import obj

POLICY = "admissionregistration.k8s.io/v1:MutatingAdmissionPolicy"
BINDING = "admissionregistration.k8s.io/v1:MutatingAdmissionPolicyBinding"


def recorded(version: str = "1.36") -> Recording:
    args = TrainingAdmissionArgs(kubernetes_version=version, rules=RULES)
    return record(lambda: TrainingAdmission("admission", args))


def test_each_rule_is_a_policy_and_its_binding() -> None:
    admission = recorded()
    for kind in (POLICY, BINDING):
        names = {str(obj(resource.inputs["metadata"])["name"]) for resource in admission.of(kind)}
        assert names == {"training-spot-pods", "training-gpu-pods"}, f"one {kind} for each rule"


def test_a_policy_arrives_at_the_engine_as_it_was_rendered() -> None:
    policy = recorded().one(POLICY, "admission-spot")
    assert policy.inputs["spec"] == policy_spec(SPOT_RULE), (
        "the SDK must pass the API's own field names through"
    )


def test_a_binding_comes_after_its_policy_and_goes_before_it() -> None:
    binding = recorded().one(BINDING, "admission-spot-binding")
    assert "admission-spot" in binding.depends_on, "a binding to no policy would let every pod pass unseen"
    assert binding.inputs["spec"] == {"policyName": "training-spot-pods"}, (
        "it must bind the policy of its rule"
    )


def test_only_pods_being_created_in_training_namespaces_are_looked_at() -> None:
    for rule in RULES:
        constraints = policy_spec(rule)["matchConstraints"]
        assert constraints == {
            "namespaceSelector": {"matchLabels": {"holdfast.dev/training": "true"}},
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ],
        }, "job objects, running pods and other namespaces are none of its business"


def test_a_policy_has_no_match_conditions() -> None:
    for rule in RULES:
        assert "matchConditions" not in policy_spec(rule), (
            "the API server reinvokes no policy whose conditions did not hold the first time"
        )


def test_an_older_cluster_is_refused_before_anything_is_registered() -> None:
    with pytest.raises(ConfigError, match=r"1\.36 or later"):
        recorded("1.35")
