"""The policies of transfers, as they are registered; tests on two clusters hold what they refuse."""

from __future__ import annotations

from holdfast.components.fallback_controller.transfer_policy import (
    COPIES_POLICY,
    COPY_RULES,
    HOME_POLICY,
    TransferPolicy,
    TransferPolicyArgs,
)
from holdfast.fallback.state_machine.transfer import Permit
from holdfast.scheduling.labels import PERMITS
from tests.support.fakes.pulumi_engine import record
from tests.support.json_objects import obj, objects


def test_both_policies_are_bound_and_refuse() -> None:
    recorded = record(lambda: TransferPolicy("transfers", TransferPolicyArgs(accounts=("home-controller",))))
    policies = {
        str(obj(each.inputs["metadata"])["name"]): obj(each.inputs["spec"])
        for each in recorded.of(":ValidatingAdmissionPolicy")
    }
    bindings = [obj(each.inputs["spec"]) for each in recorded.of(":ValidatingAdmissionPolicyBinding")]

    assert set(policies) == {HOME_POLICY, COPIES_POLICY}, "one for each side"
    assert {str(each["policyName"]) for each in bindings} == set(policies), (
        "an unbound policy refuses nothing"
    )
    assert all("Deny" in objects(each["validationActions"]) for each in bindings), "a warning refuses nothing"
    assert all(each["failurePolicy"] == "Fail" for each in policies.values()), (
        "what cannot be judged is refused"
    )
    assert "home-controller" in str(policies[COPIES_POLICY]), "only home's controller permits a copy to run"


def test_permits_are_those_of_the_protocol_in_its_order() -> None:
    assert tuple(each.value for each in Permit) == PERMITS, "the policy compares places in this list"


def test_the_rights_over_there_name_kinds_and_are_for_a_namespace() -> None:
    written = {
        str(resource)
        for rule in COPY_RULES
        for resource in objects(rule["resources"])
        if {"create", "delete", "patch"} & set(map(str, objects(rule["verbs"])))
    }
    assert written == {"jobsets"}, "home's controller writes nothing but copies there"
