"""Simulated GKE node pools: computed outputs, refused changes, and replacements."""

import pytest

from pulumi_holdfast.rehearsal.engine.values import Properties, Value
from tests.support.clusters.gke_console import GPUS, PATH, GkeConsole
from tests.support.clusters.provider_calls import Provider, refused

A2: dict[str, Value] = {"machineType": "a2-highgpu-8g", "guestAccelerators": GPUS}
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
SPOT_TAINT = {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"}


@pytest.fixture
def console(gcp: Provider) -> GkeConsole:
    made = GkeConsole(gcp=gcp)
    made.cluster()
    return made


def config(outputs: Properties) -> Properties:
    found = outputs["nodeConfig"]
    assert isinstance(found, dict)
    return found


def test_a_pool_needs_its_cluster(gcp: Provider) -> None:
    refused(GkeConsole(gcp=gcp).pool, f"googleapi: Error 404: Not found: {PATH}., notFound")


def test_gpus_are_tainted_once_where_there_are_nodes_without(console: GkeConsole) -> None:
    console.pool("system")
    found = config(console.outputs("a100", **A2, taints=[SPOT_TAINT]))
    assert found["effectiveTaints"] == [SPOT_TAINT, GPU_TAINT]
    assert found["taints"] == [SPOT_TAINT]
    twice = "Error 400: Found more than one taint with key nvidia.com/gpu and effect NO_SCHEDULE."
    refused(lambda: console.pool("two", **A2, taints=[GPU_TAINT]), twice)


def test_gpus_are_not_tainted_in_a_cluster_of_nothing_else(console: GkeConsole) -> None:
    first = console.outputs("first", **A2)
    assert config(first)["effectiveTaints"] == [], "cluster services must run somewhere"
    console.pool("system")
    pool = console.engine("first")
    object_id, _, inputs = pool.read(f"{PATH}/nodePools/first")
    after = pool.update(object_id, {**inputs, "autoscaling": {"totalMaxNodeCount": 9}})
    assert config(after)["effectiveTaints"] == []


def test_a_clusters_own_first_pool_counts_among_those_without_gpus(gcp: Provider) -> None:
    console = GkeConsole(gcp=gcp)
    console.cluster(removeDefaultNodePool=False)
    assert config(console.outputs("a100", **A2))["effectiveTaints"] == [GPU_TAINT]


def test_disks_that_a_machine_brings_show_as_if_they_had_been_asked_for(console: GkeConsole) -> None:
    disks: Value = {"localSsdCount": 16}
    for name, asked, replaces in (
        ("plain", {}, ["nodeConfig.ephemeralStorageLocalSsdConfig"]),
        ("asked", {"ephemeralStorageLocalSsdConfig": disks}, []),
    ):
        pool, inputs = console.engine(name), console.inputs(name, machineType="a3-highgpu-8g", **asked)
        _, _, shown = pool.read(pool.create(inputs)[0], inputs=inputs)
        assert config(shown)["ephemeralStorageLocalSsdConfig"] == disks
        answer = pool.diff(shown, inputs)
        assert list(answer.replaces) == replaces
        assert bool(answer.detailedDiff) is bool(replaces)


def test_a_pool_needs_the_account_of_its_nodes(console: GkeConsole) -> None:
    account = "missing@holdfast-test.iam.gserviceaccount.com"
    missing = f'Service account "{account}" does not exist.'
    refused(lambda: console.pool("cpu", serviceAccount=account), missing)
