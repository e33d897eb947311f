"""The resource group of a stack on Azure."""

from pulumi import CustomResource

from pulumi_holdfast.azure.training_cluster import StackResourceGroup, StackResourceGroupArgs
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import text, value


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
