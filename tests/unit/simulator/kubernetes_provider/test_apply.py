"""Each resource has its own field manager."""

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_provider.apply import is_managed_by, manager_for

ONE = "urn:pulumi:test::test::kubernetes:core/v1:ConfigMap::one"


def test_each_resource_has_one_manager_in_every_run() -> None:
    assert manager_for(ONE) == manager_for(ONE), "the next run must find an interrupted create"
    assert manager_for(ONE) != manager_for(f"{ONE}s"), "a deletion must keep the fields of the new one"
    obj: Json = {
        "metadata": {
            "managedFields": [{"manager": "a", "operation": "Apply"}, {"manager": "b", "operation": "Update"}]
        }
    }
    assert is_managed_by(obj, "a"), "the interrupted run created it"
    assert not is_managed_by(obj, "b"), "an update of the status is no apply"
