"""Pools of GKE: node pools, their nodes, and ComputeClasses."""

from dataclasses import replace

import pytest

from pulumi_holdfast.gcp.pools import (
    GkeComputeClass,
    GkeComputeClassArgs,
    GkeFlexStart,
    GkePool,
    GkePoolArgs,
    GkeReservation,
    GracefulShutdown,
    grace_of_user_pods,
    node_config,
    upgrade_settings,
)
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, COMPUTE_CLASS, POOL, CapacityType
from pulumi_holdfast.ladder.machines import with_attached
from tests.support.builders.configurations import pool
from tests.support.builders.gke_components import A100_SPOT, ACCOUNT, CPU, MACHINES
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import mapping, objects, text, value


def recorded(args: GkePoolArgs = A100_SPOT, *, preview: bool = False) -> Recording:
    return record(lambda: GkePool("pool-it", args), preview=preview)


def node_pool(args: GkePoolArgs = A100_SPOT) -> Recorded:
    return recorded(args).one(":NodePool")


@pytest.mark.parametrize("preview", [False, True])
def test_it_creates_one_private_node_pool_with_the_pools_name(preview: bool) -> None:
    recording = recorded(preview=preview)
    pool = node_pool()
    made = sorted((resource.type, resource.name) for resource in recording)
    assert made == [
        ("gcp:container/nodePool:NodePool", "pool-it-node-pool"),
        ("holdfast:index:GkePool", "pool-it"),
    ]
    assert value(pool, "name") == "a100-spot"
    assert value(pool, "networkConfig", "enablePrivateNodes") is True, "whatever the cluster's default"


@pytest.mark.parametrize(("args", "policy"), [(A100_SPOT, "ANY"), (CPU, "BALANCED")])
def test_the_autoscaler_limits_the_whole_pool_and_sets_the_number_of_nodes(
    args: GkePoolArgs, policy: str
) -> None:
    made = node_pool(args)
    assert mapping(made, "autoscaling") == {
        "totalMinNodeCount": 0,
        "totalMaxNodeCount": args.pool.max_nodes,
        "locationPolicy": policy,
    }
    assert value(made, "initialNodeCount") == 0
    assert made.ignore_changes == {"initialNodeCount"}
    assert value(made, "ignoreNodeCountChanges") is True
    assert value(made, "nodeCount") is None


def test_compact_placement_is_used_only_if_configured() -> None:
    assert value(node_pool(), "placementPolicy") is None
    compact = node_pool(replace(A100_SPOT, zones=("europe-west4-a",), compact_placement=True))
    assert value(compact, "placementPolicy", "type") == "COMPACT"
    assert compact.replace_on_changes == {"nodeLocations"}, "its machines cannot move to another zone"


def test_upgrades_replace_nodes_in_place_or_all_at_once() -> None:
    assert upgrade_settings("surge") == {"strategy": "SURGE", "max_surge": 0, "max_unavailable": 1}
    settings = upgrade_settings("blue-green")
    assert settings.get("strategy") == "BLUE_GREEN"
    blue_green = mapping(
        node_pool(replace(CPU, upgrades="blue-green")), "upgradeSettings", "blueGreenSettings"
    )
    assert value(blue_green, "standardRolloutPolicy", "batchPercentage") == 1.0
    assert blue_green["nodePoolSoakDuration"] == "0s", "idle machines with GPUs would be billed"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"zones": ()}, "pool a100-spot: zones is empty"),
        ({"compact_placement": True}, "compact placement needs exactly one zone"),
        (
            {
                "compact_placement": True,
                "zones": ("europe-west4-a",),
                "machine": replace(MACHINES["n1-standard-8"], gpus=1, accelerator="nvidia-tesla-t4"),
            },
            "n1-standard-8 does not support compact placement",
        ),
        (
            {"compact_placement": True, "zones": ("europe-west4-a",), "upgrades": "blue-green"},
            "compact placement does not support blue-green upgrades",
        ),
        ({"machine": MACHINES["n2-standard-8"]}, "n2-standard-8 has 0 GPUs, which contradicts the pool"),
        ({"pool": replace(A100_SPOT.pool, name="a" * 41)}, "node pool's name has at most 40 characters"),
    ],
)
def test_invalid_pools_are_rejected(change: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        replace(A100_SPOT, **change)  # pyright: ignore[reportArgumentType] - one change of any field


@pytest.mark.parametrize("streams", [True, False])
def test_images_are_streamed_unless_it_is_turned_off(*, streams: bool) -> None:
    made = node_pool(replace(A100_SPOT, image_streaming=streams))
    assert value(made, "nodeConfig", "gcfsConfig", "enabled") is streams


def test_only_spot_nodes_have_the_spot_settings_and_taint() -> None:
    config = node_config(A100_SPOT)
    for args in (A100_SPOT, CPU):
        is_spot = args.pool.capacity is CapacityType.SPOT
        assert value(node_pool(args), "nodeConfig", "spot") is is_spot, f"{args.pool.name}: its capacity type"
    spot = config.get("taints")
    assert spot == [{"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"}]
    assert node_config(CPU).get("taints") == []
    assert "kubelet_config" not in node_config(CPU)
    assert config.get("labels") == {POOL: "a100-spot"}


def test_gpus_are_declared_with_their_driver_also_attached_ones() -> None:
    expected = [
        {
            "type": "nvidia-tesla-a100",
            "count": 8,
            "gpu_driver_installation_config": {"gpu_driver_version": "DEFAULT"},
        }
    ]
    assert node_config(A100_SPOT).get("guest_accelerators") == expected
    latest = node_config(replace(A100_SPOT, gpu_driver="latest")).get("guest_accelerators")
    assert "LATEST" in str(latest)
    machine = with_attached(MACHINES["n1-standard-8"], "nvidia-tesla-t4", 2)
    attached = node_config(replace(A100_SPOT, machine=machine)).get("guest_accelerators")
    assert "'type': 'nvidia-tesla-t4', 'count': 2" in str(attached)
    assert "guest_accelerators" not in node_config(CPU)


@pytest.mark.parametrize(("seconds", "critical"), [(0, 0), (30, 5), (120, 10)])
def test_preempted_nodes_give_most_time_to_user_pods(seconds: GracefulShutdown, critical: int) -> None:
    kubelet = node_config(replace(A100_SPOT, graceful_shutdown_seconds=seconds)).get("kubelet_config")
    assert kubelet == {
        "shutdown_grace_period_seconds": seconds,
        "shutdown_grace_period_critical_pods_seconds": critical,
    }
    assert grace_of_user_pods(seconds) == seconds - critical


@pytest.mark.parametrize(("name", "disks"), [("a3-highgpu-8g", 16), ("a2-highgpu-8g", None)])
def test_local_disks_of_the_machine_are_listed(name: str, disks: int | None) -> None:
    config = node_config(replace(A100_SPOT, machine=MACHINES[name]))
    expected = None if disks is None else {"local_ssd_count": disks}
    assert config.get("ephemeral_storage_local_ssd_config") == expected


@pytest.mark.parametrize(
    ("name", "disk"), [("n2-standard-8", "pd-balanced"), ("c4-standard-8", "hyperdisk-balanced")]
)
def test_the_boot_disk_type_is_supported_by_the_machine(name: str, disk: str) -> None:
    assert node_config(replace(CPU, machine=MACHINES[name])).get("disk_type") == disk


@pytest.mark.parametrize("args", [CPU, A100_SPOT], ids=["cpu", "gpu"])
def test_nodes_do_not_expose_their_identity(args: GkePoolArgs) -> None:
    config = node_config(args)
    assert config.get("workload_metadata_config") == {"mode": "GKE_METADATA"}
    assert config.get("service_account") == ACCOUNT, "the default account has broad permissions"
    assert config.get("shielded_instance_config") == {
        "enable_secure_boot": True,
        "enable_integrity_monitoring": True,
    }


def test_a_pool_of_a_compute_class_has_its_label_and_taint() -> None:
    config = node_config(replace(A100_SPOT, compute_class="a100"))
    assert config.get("labels") == {POOL: "a100-spot", COMPUTE_CLASS: "a100"}
    taints = config.get("taints")
    assert taints == [{"key": COMPUTE_CLASS, "value": "a100", "effect": "NO_SCHEDULE"}]


SPOT = CapacityType.SPOT
ARGS = GkeComputeClassArgs(
    name="gpus-spot", pools=(pool("a100-spot", capacity=SPOT), pool("h100-spot", capacity=SPOT))
)


def test_only_the_compute_class_is_created_with_its_pools_in_order() -> None:
    recording = record(lambda: GkeComputeClass("class-gpus", ARGS))
    made = sorted((resource.type, resource.name) for resource in recording)
    assert made == [
        ("holdfast:index:GkeComputeClass", "class-gpus"),
        ("kubernetes:cloud.google.com/v1:ComputeClass", "class-gpus-compute-class"),
    ]
    assert text(recording.one(":ComputeClass"), "metadata", "name") == "gpus-spot"
    spec = mapping(recording.one(":ComputeClass"), "spec")
    assert spec["priorities"] == [{"nodepools": ["a100-spot"]}, {"nodepools": ["h100-spot"]}]
    assert spec["whenUnsatisfiable"] == "DoNotScaleUp", "GKE would create other machines"
    assert value(spec, "nodePoolAutoCreation", "enabled") is False
    assert value(spec, "activeMigration", "optimizeRulePriority") is False


@pytest.mark.parametrize("name", ["gke-gpus", "autopilot-gpus"])
def test_a_class_without_pools_of_both_capacity_types_or_with_a_reserved_name_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="different capacity types"):
        replace(ARGS, pools=(*ARGS.pools, pool("a100")))
    with pytest.raises(ValueError, match="pools is empty"):
        replace(ARGS, pools=())
    with pytest.raises(ValueError, match=f"ComputeClass {name}: names that begin with gke"):
        replace(ARGS, name=name)


RESERVED = replace(A100_SPOT.pool, capacity=CapacityType.RESERVED)


def test_a_reserved_pool_uses_only_its_reservation() -> None:
    made = node_pool(
        replace(A100_SPOT, pool=RESERVED, zones=["us-central1-a"], source=GkeReservation(name="a100"))
    )
    assert mapping(made, "nodeConfig", "reservationAffinity") == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["a100"],
    }
    assert value(made, "nodeConfig", "spot") is False
    assert objects(made, "nodeConfig", "taints") == [
        {"key": CAPACITY_TYPE, "value": "reserved", "effect": "NO_SCHEDULE"}
    ]


def test_a_pool_of_flex_start_follows_the_rules_of_gke() -> None:
    made = node_pool(replace(A100_SPOT, pool=RESERVED, source=GkeFlexStart(max_run_seconds=604800)))
    assert value(made, "nodeConfig", "flexStart") is True
    assert value(made, "nodeConfig", "maxRunDuration") == "604800s"
    assert value(made, "nodeConfig", "reservationAffinity", "consumeReservationType") == "NO_RESERVATION"
    assert value(made, "management", "autoRepair") is False
    assert value(made, "autoscaling", "locationPolicy") == "ANY"
    assert "upgradeSettings" not in made.inputs


@pytest.mark.parametrize("source", [None, GkeReservation(name="a100")])
def test_a_reserved_pool_and_no_other_has_a_source(source: GkeReservation | None) -> None:
    capacity = CapacityType.RESERVED if source is None else CapacityType.SPOT
    with pytest.raises(ValueError, match="set both or neither"):
        replace(A100_SPOT, pool=replace(A100_SPOT.pool, capacity=capacity), source=source)
