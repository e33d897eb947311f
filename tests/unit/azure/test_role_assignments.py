"""Role assignments on Azure."""

from dataclasses import replace

import pytest

from pulumi_holdfast.azure.role_assignments import READER, Assignment, AssignmentArgs, assignment_name
from tests.support.fakes.pulumi_engine import Recorded, record
from tests.support.inputs import text

ARGS = AssignmentArgs(subscription_id="s", scope="/subscriptions/s", role=READER, principal_id="p")


def made(args: AssignmentArgs) -> Recorded:
    return record(lambda: Assignment("grant", args)).one(":RoleAssignment")


def test_an_assignment_is_named_after_principal_role_and_scope() -> None:
    assert text(made(ARGS), "roleAssignmentName") == assignment_name(
        scope="/subscriptions/s", principal_id="p", role=READER
    )
    names = {
        text(made(args), "roleAssignmentName")
        for args in (ARGS, replace(ARGS, principal_id="q"), replace(ARGS, scope="/subscriptions/t"))
    }
    assert len(names) == 3


@pytest.mark.parametrize("kind", ["User", "Group", "ServicePrincipal"])
def test_the_principal_type_is_set_if_known_and_null_otherwise(kind: str) -> None:
    grant = made(replace(ARGS, principal_type=kind))
    assert text(grant, "principalType") == kind
    assert "principalType" not in made(ARGS).inputs, "the SDK's default `User` is rejected for pipelines"


def test_a_kept_assignment_ignores_another_principal() -> None:
    assert made(replace(ARGS, keep_principal=True)).ignore_changes == {
        "principalId",
        "principalType",
        "roleAssignmentName",
    }
    assert not made(ARGS).ignore_changes
