"""Each resource applies its object by a field manager of its own."""

from typing import TYPE_CHECKING

from holdfast.simulator.kubernetes_provider.apply import is_managed_by, manager_for

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

ONE = "urn:pulumi:test::test::kubernetes:core/v1:ConfigMap::one"


def test_a_resource_has_the_same_manager_in_every_run() -> None:
    assert manager_for(ONE) == manager_for(ONE), "an interrupted create would never be found again"


def test_two_resources_have_two_managers() -> None:
    assert manager_for(ONE) != manager_for(f"{ONE}s"), "a renamed resource would take its own object away"


def test_only_who_applied_an_object_manages_it() -> None:
    obj: Json = {
        "metadata": {
            "managedFields": [{"manager": "a", "operation": "Apply"}, {"manager": "b", "operation": "Update"}]
        }
    }
    assert is_managed_by(obj, "a"), "the interrupted run is not recognised"
    assert not is_managed_by(obj, "b"), "who only wrote the status did not make the object"
