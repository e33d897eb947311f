"""Simulated GKE node pools: computed outputs, refused changes, and replacements."""

import pytest

from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Value
from tests.support.clusters.gke_console import GPUS, PATH, GkeConsole
from tests.support.clusters.provider_calls import Provider, refused

GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
SPOT_TAINT = {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"}


@pytest.fixture
def console(gcp: Provider) -> GkeConsole:
    made = GkeConsole(gcp=gcp)
    made.cluster()
    return made


def config(outputs: Properties) -> Properties:
    found = outputs["nodeConfig"]
    assert isinstance(found, dict), "a pool has a node configuration"
    return found


def test_a_pool_is_identified_by_its_path_and_has_its_name_alone(console: GkeConsole) -> None:
    assert console.pool("cpu") == f"{PATH}/nodePools/cpu", "the id is what an import takes"
    other = console.engine("other")
    other.refuses_create(console.inputs("cpu"), "resource - nodePools/cpu - already exists")


def test_a_pool_needs_its_cluster(gcp: Provider) -> None:
    refused(GkeConsole(gcp=gcp).pool, f"googleapi: Error 404: Not found: {PATH}., notFound")


def test_gpus_are_tainted_once_where_there_are_nodes_without(console: GkeConsole) -> None:
    console.pool("system")
    found = config(
        console.outputs("a100", machineType="a2-highgpu-8g", guestAccelerators=GPUS, taints=[SPOT_TAINT])
    )
    assert found["effectiveTaints"] == [SPOT_TAINT, GPU_TAINT], "its own, and GKE's"
    assert found["taints"] == [SPOT_TAINT], "GKE's own are not among those the program gave"
    refused(
        lambda: console.pool("two", machineType="a2-highgpu-8g", guestAccelerators=GPUS, taints=[GPU_TAINT]),
        "Error 400: Found more than one taint with key nvidia.com/gpu and effect NO_SCHEDULE., badRequest",
    )


def test_gpus_are_not_tainted_in_a_cluster_of_nothing_else(console: GkeConsole) -> None:
    first = console.outputs("first", machineType="a2-highgpu-8g", guestAccelerators=GPUS)
    assert config(first)["effectiveTaints"] == [], "cluster services must run somewhere"
    console.pool("system")
    pool = console.engine("first")
    object_id, _, inputs = pool.read(f"{PATH}/nodePools/first")
    after = pool.update(object_id, {**inputs, "autoscaling": {"totalMaxNodeCount": 9}})
    assert config(after)["effectiveTaints"] == [], "nor afterwards, when there are others"


def test_a_clusters_own_first_pool_counts_among_those_without_gpus(gcp: Provider) -> None:
    console = GkeConsole(gcp=gcp)
    console.cluster(removeDefaultNodePool=False)
    found = console.outputs("a100", machineType="a2-highgpu-8g", guestAccelerators=GPUS)
    assert config(found)["effectiveTaints"] == [GPU_TAINT], "it is there when the pool comes"


def test_gpus_get_the_default_driver_unless_another_is_asked_for(console: GkeConsole) -> None:
    (plain,) = _accelerators(console.outputs("plain", machineType="a2-highgpu-8g", guestAccelerators=GPUS))
    assert plain["gpuDriverInstallationConfig"] == {"gpuDriverVersion": "DEFAULT"}, "as of GKE 1.30"
    latest = [{**GPUS[0], "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"}}]
    (asked,) = _accelerators(console.outputs("asked", machineType="a2-highgpu-8g", guestAccelerators=latest))
    assert asked["gpuDriverInstallationConfig"] == {"gpuDriverVersion": "LATEST"}, "as it was asked for"


def _accelerators(outputs: Properties) -> list[Properties]:
    found = config(outputs)["guestAccelerators"]
    assert isinstance(found, list), "GPUs are a list"
    return [each for each in found if isinstance(each, dict)]


def test_disks_that_a_machine_brings_show_as_if_they_had_been_asked_for(console: GkeConsole) -> None:
    object_id = console.pool("h100", machineType="a3-highgpu-8g")
    pool, asked = console.engine("h100"), console.inputs("h100", machineType="a3-highgpu-8g")
    _, _, shown = pool.read(object_id, inputs=asked)
    assert config(shown)["ephemeralStorageLocalSsdConfig"] == {"localSsdCount": 16}, "a refresh finds them"
    answer = pool.diff(shown, asked)
    assert list(answer.replaces) == ["nodeConfig.ephemeralStorageLocalSsdConfig"], "it replaces the pool"


def test_disks_that_were_asked_for_make_no_difference(console: GkeConsole) -> None:
    asked: Value = {"localSsdCount": 16}
    inputs = console.inputs("h100", machineType="a3-highgpu-8g", ephemeralStorageLocalSsdConfig=asked)
    object_id, _ = console.engine("h100").create(inputs)
    _, _, shown = console.engine("h100").read(object_id, inputs=inputs)
    assert not console.engine("h100").diff(shown, inputs).detailedDiff, "the program said what there is"


@pytest.mark.parametrize(
    ("change", "replaced"),
    [
        ({"machineType": "n2-standard-16"}, False),
        ({"taints": [SPOT_TAINT]}, False),
        ({"labels": {"team": "vision"}}, False),
        ({"diskSizeGb": 200}, False),
        ({"spot": True}, True),
        ({"serviceAccount": "other@elsewhere.iam.gserviceaccount.com"}, True),
        ({"guestAccelerators": GPUS}, True),
    ],
)
def test_what_a_change_of_the_nodes_costs(
    console: GkeConsole, change: dict[str, Value], replaced: bool
) -> None:
    answer = console.engine("cpu").diff(console.inputs("cpu"), console.inputs("cpu", **change))
    assert bool(answer.replaces) is replaced, "as the provider's own description of the resource has it"
    assert answer.deleteBeforeReplace is replaced, "a name can be had once"


@pytest.mark.parametrize(
    ("change", "replaced"),
    [
        ({"placementPolicy": {"type": "COMPACT"}}, True),
        ({"initialNodeCount": 1}, True),
        ({"nodeLocations": ["europe-west4-c"]}, False),
        ({"autoscaling": {"totalMaxNodeCount": 3}}, False),
    ],
)
def test_what_a_change_of_the_pool_costs(
    console: GkeConsole, change: dict[str, Value], replaced: bool
) -> None:
    inputs = console.inputs("cpu")
    answer = console.engine("cpu").diff(inputs, {**inputs, **change})
    assert bool(answer.replaces) is replaced, "as the provider's own description of the resource has it"


def test_a_pool_needs_the_account_of_its_nodes(console: GkeConsole) -> None:
    account = "missing@holdfast-test.iam.gserviceaccount.com"
    refused(
        lambda: console.pool("cpu", serviceAccount=account), f'Service account "{account}" does not exist.'
    )


def test_a_pool_has_its_clusters_zones_and_version_unless_it_says_others(console: GkeConsole) -> None:
    outputs = console.outputs("cpu")
    assert outputs["nodeLocations"] == ["europe-west4-a", "europe-west4-b"], "its cluster's"
    assert str(outputs["version"]).startswith("1."), "its cluster's, on the day it was made"
    assert outputs["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0}, (
        "GKE's own"
    )


def test_a_preview_knows_what_was_said_of_the_nodes(console: GkeConsole) -> None:
    planned = console.engine("cpu").plan(console.inputs("cpu", labels={"holdfast.dev/pool": "cpu"}))
    found = config(planned)
    assert found["labels"] == {"holdfast.dev/pool": "cpu"}, "policies judge a ladder by it before an update"
    assert found["effectiveTaints"] is UNKNOWN, "and what GKE adds is known afterwards"
