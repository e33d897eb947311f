"""A role on Azure, given to somebody: once, by a name that follows from who, what and where."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holdfast.components.iam.azure import READER, Assignment, AssignmentArgs, assignment_name
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import text

if TYPE_CHECKING:
    from tests.support.fakes.pulumi_engine import Recorded

ARGS = AssignmentArgs(subscription_id="s", scope="/subscriptions/s", role=READER, principal_id="p")


def made(args: AssignmentArgs) -> Recorded:
    return record(lambda: Assignment("grant", args)).one(":RoleAssignment")


def test_a_role_is_named_by_whom_it_is_given_what_it_is_and_where() -> None:
    assert text(made(ARGS), "roleAssignmentName") == assignment_name(
        scope="/subscriptions/s", principal_id="p", role=READER
    ), "made twice it is the same one, and Azure refuses a second of another name"
    names = {
        text(made(args), "roleAssignmentName")
        for args in (ARGS, replace(ARGS, principal_id="q"), replace(ARGS, scope="/subscriptions/t"))
    }
    assert len(names) == 3, "Azure lets nothing of an assignment be changed"


@pytest.mark.parametrize("kind", ["User", "Group", "ServicePrincipal"])
def test_a_principal_that_is_known_is_called_what_it_is(kind: str) -> None:
    grant = made(replace(ARGS, principal_type=kind))
    assert text(grant, "principalType") == kind, "Azure need not look it up"


def test_of_a_principal_that_is_not_known_azure_is_told_nothing() -> None:
    assert "principalType" not in made(ARGS).inputs, (
        "the SDK says `User`, and Azure refuses a pipeline for it: UnmatchedPrincipalType"
    )


def test_who_was_given_a_role_for_good_keeps_it() -> None:
    assert made(replace(ARGS, kept=True)).ignore_changes == {
        "principalId",
        "principalType",
        "roleAssignmentName",
    }, "whoever comes after"
    assert not made(ARGS).ignore_changes, "everybody else's goes when they do"
