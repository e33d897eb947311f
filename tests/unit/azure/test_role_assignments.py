"""Role assignments on Azure."""

from dataclasses import replace

import pytest
from pulumi import CustomResource

from pulumi_holdfast.azure.role_assignments import READER, Assignment, AssignmentArgs, assignment_name
from pulumi_holdfast.azure.training_cluster import StackResourceGroup, StackResourceGroupArgs
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import text, value

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


class Inside(CustomResource):
    """A resource in the group."""

    def __init__(self, group: object) -> None:
        super().__init__("test:index:Inside", "inside", {"group": group})


def recorded(*, protected: bool = False, preview: bool = False) -> Recording:
    def build() -> None:
        group = StackResourceGroup(
            "group",
            StackResourceGroupArgs(group_name="holdfast-dev", location="westeurope", protected=protected),
        )
        Inside(group.group_name)

    return record(build, preview=preview)


def test_resources_in_the_group_depend_on_it_and_know_its_name_on_preview() -> None:
    recording = recorded(preview=True)
    assert value(recording.one(":Inside"), "group") == "holdfast-dev"
    recording = recorded()
    assert "group-group" in recording.everything_before(recording.one(":Inside"))
    assert text(recording.one(":ResourceGroup"), "resourceGroupName") == "holdfast-dev"


def test_a_protected_group_is_not_deleted() -> None:
    assert recorded(protected=True).one(":ResourceGroup").protect, "everything in it would be deleted"
    assert not recorded().one(":ResourceGroup").protect
