"""The nodes of a GKE node pool are what GKE makes of the pool."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.quantities import parse_quantity
from pulumi_holdfast.rehearsal.clouds.gcp.instances import REGISTER, machines_of
from pulumi_holdfast.rehearsal.clouds.gcp.nodes import allocatable, template_of
from pulumi_holdfast.rehearsal.clouds.machines import MachineGroup, MachineState, NodeTemplate
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from tests.support.builders.autoscaling_objects import cluster, node_pool


def _template(*others: CloudObject, **inputs: JsonValue) -> NodeTemplate:
    pool = node_pool("cpu", digest="d1", **inputs)
    return template_of(pool, Inventory([*others, pool], {}))


def _config(**config: JsonValue) -> Json:
    return {"machineType": "e2-standard-4", **config}


@pytest.mark.parametrize(
    ("machine_type", "cores", "memory", "expected"),
    [
        # The figures of GKE's documentation, worked out by hand.
        ("e2-standard-2", 2, 8192, {"cpu": "1930m", "memory": "6248Mi"}),
        ("e2-standard-4", 4, 16384, {"cpu": "3920m", "memory": "13621Mi"}),
        ("n2-standard-32", 32, 131072, {"cpu": "31850m", "memory": "121428Mi"}),
        ("e2-medium", 2, 4096, {"cpu": "940m", "memory": "2972Mi"}),
    ],
)
def test_allocatable_as_documented(
    machine_type: str, cores: int, memory: int, expected: dict[str, str]
) -> None:
    capacity = {"cpu": str(cores), "memory": f"{memory}Mi", "ephemeral-storage": "100Gi", "pods": "110"}
    found = allocatable(machine_type, capacity)
    assert {name: found[name] for name in expected} == expected
    assert found["ephemeral-storage"] == "49Gi"
    assert found["pods"] == "110"


@given(cores=st.integers(2, 416), memory=st.integers(4096, 12_000_000))
def test_a_machine_with_more_gives_more(cores: int, memory: int) -> None:
    small, large = (
        allocatable("n2", {"cpu": str(c), "memory": f"{m}Mi", "ephemeral-storage": "100Gi"})
        for c, m in ((cores, memory), (cores + 1, memory + 1024))
    )
    for name in ("cpu", "memory"):
        assert 0 < parse_quantity(small[name]) < parse_quantity(large[name]), f"{name} does not grow"


def test_spot_pools_have_their_labels_and_cost_less() -> None:
    labels = _template(nodeConfig=_config(spot=True, labels={"team": "ml"})).labels
    assert labels["cloud.google.com/gke-spot"] == "true"
    assert labels["cloud.google.com/gke-provisioning"] == "spot"
    assert labels["team"] == "ml"
    labels = _template().labels
    assert labels["cloud.google.com/gke-provisioning"] == "standard"
    assert "cloud.google.com/gke-spot" not in labels
    assert labels["cloud.google.com/machine-family"] == "e2"
    spot = _template(nodeConfig=_config(spot=True))
    assert spot.hourly_price < _template().hourly_price


def test_taints_are_those_that_are_in_force_in_the_nodes_own_spelling() -> None:
    taint: Json = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
    expected: Json = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    assert _template(nodeConfig=_config(effectiveTaints=[taint])).taints == (expected,)
    assert _template(nodeConfig=_config(taints=[taint])).taints == (expected,)


def test_gpus_and_capacity_are_those_of_the_machine() -> None:
    gpus: JsonValue = [{"type": "nvidia-tesla-t4", "count": 2}]
    attached = _template(nodeConfig=_config(machineType="n1-standard-8", guestAccelerators=gpus))
    assert attached.capacity["nvidia.com/gpu"] == "2"
    assert attached.labels["cloud.google.com/gke-accelerator"] == "nvidia-tesla-t4"
    brought = _template(nodeConfig=_config(machineType="a2-highgpu-8g"))
    assert brought.capacity["nvidia.com/gpu"] == "8"
    assert "nvidia.com/gpu" not in _template().capacity
    assert _template(nodeConfig={}).capacity["cpu"] == "2", "GKE's default is e2-medium"
    assert _template(nodeConfig=_config(machineType="x9-huge")).capacity["cpu"] == "2"


def test_limits_and_initial_size_count_the_whole_pool() -> None:
    total = _template(autoscaling={"totalMinNodeCount": 1, "totalMaxNodeCount": 5})
    assert (total.minimum, total.maximum, total.initial) == (1, 5, 1)
    each = _template(autoscaling={"minNodeCount": 1, "maxNodeCount": 3})
    assert (each.minimum, each.maximum, each.initial) == (2, 6, 2)
    fixed = _template(autoscaling=None, nodeCount=2)
    assert (fixed.minimum, fixed.maximum, fixed.initial) == (4, 4, 4)
    assert not fixed.is_autoscaled
    found = _template(initialNodeCount=1, autoscaling={"totalMinNodeCount": 1, "totalMaxNodeCount": 5})
    assert (found.initial, found.minimum) == (2, 1)


def test_zones_are_those_of_the_pool_its_cluster_or_its_region() -> None:
    named = cluster(nodeLocations=["europe-west4-c"])
    assert _template(named, nodeLocations=None).zones == ("europe-west4-c",)
    somewhere = ("europe-west4-a", "europe-west4-b", "europe-west4-c")
    assert _template(cluster(), nodeLocations=None).zones == somewhere
    here = cluster(location="us-central1-f", nodeLocations=["us-central1-a"])
    found = _template(here, location="us-central1-f", nodeLocations=None)
    assert found.zones == ("us-central1-f", "us-central1-a")
    path = "projects/p/locations/europe-west4/clusters/prod"
    assert _template(named, cluster=path, nodeLocations=None).zones == ("europe-west4-c",)


def test_a_node_says_where_it_is() -> None:
    machine = _template().machine("gke-prod-cpu-1", "europe-west4-b")
    assert machine.provider_id == "gce://p/europe-west4-b/gke-prod-cpu-1"
    assert machine.labels["topology.kubernetes.io/zone"] == "europe-west4-b"
    assert machine.labels["topology.kubernetes.io/region"] == "europe-west4"
    assert machine.labels["kubernetes.io/hostname"] == "gke-prod-cpu-1"


FIXED = node_pool(autoscaling=None, nodeCount=2)


def _names(pool: CloudObject, inventory: Inventory) -> list[str]:
    return [machine.name for machine in machines_of(MachineGroup(target=pool, inventory=inventory))]


@given(first=st.integers(0, 40), more=st.integers(0, 40))
def test_every_machine_has_a_name_of_its_own_that_a_node_may_have(first: int, more: int) -> None:
    pool = node_pool("a-pool-with-a-name-of-40-characters-12345", autoscaling=None, nodeCount=first)
    inventory = Inventory([pool], {})
    template = template_of(pool, inventory)
    for at in range(more):
        REGISTER.record(
            pool, REGISTER.new_instance(pool, template, template.zones[at % 2], inventory), inventory
        )
    names = _names(pool, inventory)
    assert len(set(names)) == len(names) == 2 * first + more
    assert all(len(name) <= 63 for name in names)


def test_machines_keep_their_names_and_are_spread_over_the_zones() -> None:
    again = replace(FIXED, digest="d2")
    assert _names(FIXED, Inventory([], {})) == _names(FIXED, Inventory([], {}))
    assert not {*_names(FIXED, Inventory([], {}))} & {*_names(again, Inventory([], {}))}
    template = template_of(FIXED, Inventory([], {}))
    zones = [one.zone for one in REGISTER.instances_of(FIXED, template, Inventory([], {}))]
    assert sorted(zones) == ["europe-west4-a"] * 2 + ["europe-west4-b"] * 2


def test_a_machine_is_no_node_while_it_is_taken_or_after_it_is_dropped() -> None:
    pool = node_pool(initialNodeCount=1)
    inventory = Inventory([pool], {})
    template = template_of(pool, inventory)
    bought = REGISTER.new_instance(pool, template, "europe-west4-a", inventory)
    REGISTER.record(pool, replace(bought, state=MachineState.TERMINATED), inventory)
    assert bought.name not in _names(pool, inventory)
    assert bought.name in {one.name for one in REGISTER.instances_of(pool, template, inventory)}
    REGISTER.record(pool, replace(bought, generation=2), inventory)
    assert bought.name in _names(pool, inventory)
    for one in REGISTER.instances_of(pool, template, inventory):
        REGISTER.drop(pool, template, one, inventory)
    assert _names(pool, inventory) == []
    assert inventory.find(REGISTER.type, bought.name) is None, "the state would grow without limit"


def test_machines_go_with_their_pool() -> None:
    pool, lost = node_pool(digest="new"), node_pool(digest="old")
    inventory = Inventory([pool], {})
    for one in (pool, lost):
        template = template_of(one, inventory)
        REGISTER.record(one, REGISTER.new_instance(one, template, "europe-west4-a", inventory), inventory)
    assert len(_names(pool, inventory)) == 1
    REGISTER.forget_lost_pools({pool.id: pool}, inventory)
    assert len(inventory.of_type(REGISTER.type)) == 1


def test_stock_is_out_in_one_zone_or_in_all() -> None:
    inventory = Inventory([], {})
    REGISTER.sell_out("cpu", inventory, zone="a")
    assert REGISTER.is_sold_out("cpu", "a", inventory)
    assert not REGISTER.is_sold_out("cpu", "b", inventory)
    REGISTER.sell_out("cpu", inventory)
    assert REGISTER.is_sold_out("cpu", "b", inventory)
    REGISTER.restock("cpu", inventory)
    REGISTER.restock("cpu", inventory)
    assert not REGISTER.is_sold_out("cpu", "b", inventory)
    assert REGISTER.is_sold_out("cpu", "a", inventory)
