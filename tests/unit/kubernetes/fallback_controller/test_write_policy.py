"""The policy on the controller's writes, as it is registered; tests on a cluster hold what it refuses."""

import pytest

from pulumi_holdfast.controller.jobs.rayjob_status import successor_name
from pulumi_holdfast.controller.other_clusters.protocol import Permit
from pulumi_holdfast.kubernetes.fallback_controller.access import (
    CLUSTER_RULES,
    JOB_RULES,
    PLACEHOLDER_RULES,
    SUBJECT,
)
from pulumi_holdfast.kubernetes.fallback_controller.transfer_policy import (
    COPIES_POLICY,
    HOME_POLICY,
    TransferPolicy,
)
from pulumi_holdfast.kubernetes.fallback_controller.write_policy import (
    LONGEST_SUCCESSOR_STEM,
    NAME,
    ControllerWritePolicy,
    policy_spec,
    predecessor_specs,
)
from pulumi_holdfast.ladder.labels import PERMITS
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT
from tests.support.fakes.pulumi_engine import record
from tests.support.json_objects import obj, objects

#: Written by their status, or in the controller's own namespace only.
LIMITED_BY_PERMISSIONS = {"fallbackpolicies/status", "leases"}

OPERATIONS = {"create": "CREATE", "patch": "UPDATE", "update": "UPDATE", "delete": "DELETE"}


def test_every_write_of_the_permissions_is_matched() -> None:
    matched = {
        (str(resource), str(operation))
        for rule in objects(obj(policy_spec("pause")["matchConstraints"])["resourceRules"])
        for resource in objects(rule["resources"])
        for operation in objects(rule["operations"])
    }
    granted = {
        (str(resource), OPERATIONS[str(verb)])
        for rule in (*CLUSTER_RULES, *JOB_RULES, *PLACEHOLDER_RULES)
        for resource in objects(rule["resources"])
        for verb in objects(rule["verbs"])
        if str(verb) in OPERATIONS and str(resource) not in LIMITED_BY_PERMISSIONS
    }
    assert granted - matched == {("pods", "DELETE")}


def test_the_policy_is_for_the_controllers_account_and_refuses() -> None:
    recorded = record(
        lambda: ControllerWritePolicy("writes", placeholder_image="registry.example.com/pause:1")
    )
    policy, binding = (
        recorded.one(":ValidatingAdmissionPolicy"),
        recorded.one(":ValidatingAdmissionPolicyBinding"),
    )
    assert f"system:serviceaccount:{SUBJECT['namespace']}:{SUBJECT['name']}" == CONTROLLER_ACCOUNT
    (condition,) = objects(obj(policy.inputs["spec"])["matchConditions"])
    assert CONTROLLER_ACCOUNT in str(condition["expression"])
    assert obj(policy.inputs["spec"])["failurePolicy"] == "Fail", "what cannot be judged is refused"
    assert obj(binding.inputs["spec"])["policyName"] == NAME
    assert "Deny" in objects(obj(binding.inputs["spec"])["validationActions"])
    assert "registry.example.com/pause:1" in str(policy.inputs["spec"])


def test_the_predecessor_that_a_token_brings_is_removed_and_the_true_one_added_last() -> None:
    (removes, _), (adds, bound) = predecessor_specs().values()
    assert (removes["reinvocationPolicy"], adds["reinvocationPolicy"]) == ("Never", "IfNeeded")
    assert "remove" in str(removes["mutations"])
    assert "params" not in str(removes)
    assert obj(bound["paramRef"]) == {"selector": {}, "parameterNotFoundAction": "Allow"}


def test_the_longest_name_of_a_successor_keeps_as_much_of_the_first_as_the_policy_expects() -> None:
    metadata = {"name": "n" * 47, "uid": "0a1b2c3d-0000"}
    assert successor_name({"metadata": metadata}) == f"{'n' * LONGEST_SUCCESSOR_STEM}-0a1b2c3d"


@pytest.mark.parametrize(
    ("leaves", "accounts", "expected"),
    [
        (True, ("home-controller",), {HOME_POLICY, COPIES_POLICY}),
        (True, (), {HOME_POLICY}),
        (False, ("home-controller",), {COPIES_POLICY}),
    ],
)
def test_the_policies_of_each_side_are_bound_and_refuse(
    leaves: bool, accounts: tuple[str, ...], expected: set[str]
) -> None:

    recorded = record(lambda: TransferPolicy("transfers", leaves=leaves, accounts=accounts))
    policies = {
        str(obj(each.inputs["metadata"])["name"]): obj(each.inputs["spec"])
        for each in recorded.of(":ValidatingAdmissionPolicy")
    }
    bindings = [obj(each.inputs["spec"]) for each in recorded.of(":ValidatingAdmissionPolicyBinding")]

    assert set(policies) == expected
    assert {str(each["policyName"]) for each in bindings} == set(policies)
    assert all("Deny" in objects(each["validationActions"]) for each in bindings)
    assert all(each["failurePolicy"] == "Fail" for each in policies.values())
    assert ("home-controller" in str(policies.get(COPIES_POLICY))) is bool(accounts)


def test_permits_are_those_of_the_protocol_in_its_order() -> None:
    assert tuple(each.value for each in Permit) == PERMITS
