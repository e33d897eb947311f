"""The rule by which trainers get their identity, on AKS."""

from __future__ import annotations

from holdfast.components.admission.pod_admission import policy_name, policy_spec
from holdfast.components.admission.rules import workload_identity_rule
from tests.support.inputs import objects


def test_its_policy_stands_beside_those_of_taints() -> None:
    rule = workload_identity_rule("trainer")
    assert policy_name(rule) == "training-identity-pods", "under a name of its own"
    (mutation,) = objects(policy_spec(rule), "mutations")
    assert mutation["patchType"] == "JSONPatch", "as those of taints"
    assert "variables" not in policy_spec(rule), "it asks for nothing but the account"
