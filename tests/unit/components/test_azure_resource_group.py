"""The resource group of a stack on Azure."""

from __future__ import annotations

from pulumi import CustomResource

from holdfast.components.azure_resource_group import StackResourceGroup, StackResourceGroupArgs
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import text, value


class Inside(CustomResource):
    """Anything in the group."""

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


def test_the_groups_name_is_known_before_the_group_is_there() -> None:
    recording = recorded(preview=True)
    assert value(recording.one(":Inside"), "group") == "holdfast-dev", (
        "each name in the group follows from it: unknown, a preview would show nothing"
    )


def test_whatever_is_in_the_group_is_made_after_it_and_gone_before_it() -> None:
    recording = recorded()
    assert "group-group" in recording.everything_before(recording.one(":Inside")), (
        "Azure deletes whatever is left in a group, in an order of its own"
    )
    assert text(recording.one(":ResourceGroup"), "resourceGroupName") == "holdfast-dev", (
        "`az group list` shows it"
    )


def test_a_protected_group_is_not_deleted() -> None:
    assert recorded(protected=True).one(":ResourceGroup").protect, "with it everything in it would go"
    assert not recorded().one(":ResourceGroup").protect, "nothing is in the way of a destroy"
