"""The machines of an EKS node group are what the group says."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import Json, JsonValue
from holdfast.scheduling.labels import INSTANCE_TYPE, ZONE
from holdfast.simulator.clouds.aws.node_pools import NODE_GROUP, machines_of
from holdfast.simulator.clouds.machines import Group, Machine
from holdfast.simulator.clouds.state import CloudObject, Inventory

_SUBNETS = [
    CloudObject(
        type="aws:ec2/subnet:Subnet",
        id=f"subnet-{zone}",
        urn="",
        inputs={"availabilityZone": f"eu-west-1{zone}"},
    )
    for zone in "abc"
]


def _machines(digest: str = "d", **inputs: JsonValue) -> list[Machine]:
    asked: Json = {
        "clusterName": "prod",
        "nodeGroupName": "system",
        "subnetIds": ["subnet-a", "subnet-b"],
        "instanceTypes": ["m7i.large", "m6i.large"],
        "scalingConfig": {"desiredSize": 2, "minSize": 2, "maxSize": 3},
        **inputs,
    }
    arn = "arn:aws:eks:eu-west-1:123456789012:nodegroup/prod/system/x"
    group = CloudObject(
        type=NODE_GROUP, id="prod:system", urn="u", inputs=asked, computed={"arn": arn}, digest=digest
    )
    return list(machines_of(Group(target=group, inventory=Inventory(_SUBNETS, {}))))


@given(count=st.integers(min_value=0, max_value=12))
def test_there_are_as_many_as_desired_each_with_a_name_of_its_own(count: int) -> None:
    found = _machines(scalingConfig={"desiredSize": count, "minSize": 0, "maxSize": 12})
    assert len({machine.name for machine in found}) == count, "machines share a name, or are too many"


def test_they_are_spread_over_the_subnets_zones() -> None:
    assert [machine.labels[ZONE] for machine in _machines()] == ["eu-west-1a", "eu-west-1b"], (
        "one zone's outage would take all"
    )


def test_subnets_of_the_users_own_have_zones_of_the_region() -> None:
    found = _machines(subnetIds=["subnet-x", "subnet-y"])
    assert [machine.labels[ZONE] for machine in found] == ["eu-west-1a", "eu-west-1b"], (
        "they are in some zones"
    )


def test_a_machine_keeps_its_name_and_a_new_groups_machines_have_others() -> None:
    assert _machines() == _machines(), "a machine would be ended and bought again at each look"
    assert not {each.name for each in _machines()} & {each.name for each in _machines("other")}, (
        "a replaced group would keep the old one's machines"
    )


def test_labels_taints_and_type_are_the_groups() -> None:
    (one, _) = _machines(
        labels={"holdfast.dev/system": "true"},
        taints=[{"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}],
    )
    assert one.labels["holdfast.dev/system"] == "true", "the group's label is missing"
    assert one.labels["eks.amazonaws.com/nodegroup"] == "system", "EKS labels a node with its group"
    assert one.labels[INSTANCE_TYPE] == "m7i.large", "on demand the first type is bought"
    assert one.taints == ({"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"},), (
        "Kubernetes spells effects in its own way"
    )
    assert (one.capacity["cpu"], one.capacity["memory"]) == ("2", "8192Mi"), "it holds what its type holds"
    assert one.provider_id.startswith("aws:///eu-west-1a/i-"), "an instance in its zone"
