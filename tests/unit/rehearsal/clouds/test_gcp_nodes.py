"""The nodes of a GKE node pool are what GKE makes of the pool."""

import pytest

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.clouds.gcp.nodes import allocatable, template_of
from pulumi_holdfast.rehearsal.clouds.machines import NodeTemplate
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
