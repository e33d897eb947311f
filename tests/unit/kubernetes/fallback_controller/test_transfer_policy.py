"""The policies of transfers, as they are registered; tests on two clusters hold what they refuse."""

import pytest

from pulumi_holdfast.controller.other_clusters.protocol import Permit
from pulumi_holdfast.kubernetes.fallback_controller.transfer_policy import (
    COPIES_POLICY,
    HOME_POLICY,
    TransferPolicy,
)
from pulumi_holdfast.ladder.labels import PERMITS
from tests.support.fakes.pulumi_engine import record
from tests.support.json_objects import obj, objects


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
