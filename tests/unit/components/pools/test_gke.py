"""A pool of GKE: one node pool that the cluster's own autoscaler keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holdfast.components.pools.gke import (
    GkeComputeClass,
    GkeComputeClassArgs,
    GkePool,
    GkePoolArgs,
    grace_of_user_pods,
    node_config,
    upgrade_settings,
)
from holdfast.scheduling.labels import COMPUTE_CLASS, POOL, CapacityType
from holdfast.scheduling.machines import with_attached
from tests.support.builders.configurations import pool
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.gke_pools import A100_SPOT, ACCOUNT, CPU, MACHINES
from tests.support.inputs import mapping, text, value

if TYPE_CHECKING:
    from holdfast.components.pools.gke import GracefulShutdown
    from tests.support.fakes.pulumi_engine import Recorded


def recorded(args: GkePoolArgs = A100_SPOT, *, preview: bool = False) -> Recording:
    return record(lambda: GkePool("pool-it", args), preview=preview)


def node_pool(args: GkePoolArgs = A100_SPOT) -> Recorded:
    return recorded(args).one(":NodePool")


@pytest.mark.parametrize("preview", [False, True])
def test_it_makes_one_node_pool(preview: bool) -> None:
    made = sorted((resource.type, resource.name) for resource in recorded(preview=preview))
    assert made == [
        ("gcp:container/nodePool:NodePool", "pool-it-node-pool"),
        ("holdfast:index:GkePool", "pool-it"),
    ], "a pool is one node pool"


def test_it_has_the_users_name_for_the_pool() -> None:
    assert value(node_pool(), "name") == "a100-spot", "it is what jobs select and what GKE's console shows"


@pytest.mark.parametrize(("args", "policy"), [(A100_SPOT, "ANY"), (CPU, "BALANCED")])
def test_it_is_scaled_as_a_whole_by_where_its_capacity_is(args: GkePoolArgs, policy: str) -> None:
    assert mapping(node_pool(args), "autoscaling") == {
        "totalMinNodeCount": 0,
        "totalMaxNodeCount": args.pool.max_nodes,
        "locationPolicy": policy,
    }, "a limit for each zone would be a multiple of what was meant; spot is taken where there is some"


def test_how_many_nodes_there_are_is_the_autoscalers_business() -> None:
    made = node_pool()
    assert value(made, "initialNodeCount") == 0, "a pool that nobody selects costs nothing"
    assert made.ignore_changes == {"initialNodeCount"}, (
        "GKE changes it, and the provider would replace the pool"
    )
    assert value(made, "ignoreNodeCountChanges") is True, "a refresh while jobs run shows no difference"
    assert value(made, "nodeCount") is None, "a number of our own would fight the autoscaler's"


def test_its_nodes_have_no_public_address() -> None:
    assert value(node_pool(), "networkConfig", "enablePrivateNodes") is True, (
        "whatever the cluster's default is"
    )


def test_machines_are_placed_close_to_each_other_only_where_it_is_asked_for() -> None:
    assert value(node_pool(), "placementPolicy") is None, "it makes machines harder to get"
    compact = node_pool(replace(A100_SPOT, zones=("europe-west4-a",), compact_placement=True))
    assert value(compact, "placementPolicy", "type") == "COMPACT", "as it was asked for"


def test_scarce_machines_are_upgraded_in_place() -> None:
    assert upgrade_settings("surge") == {"strategy": "SURGE", "max_surge": 0, "max_unavailable": 1}, (
        "one more of them is not to be had"
    )


def test_a_second_set_of_nodes_takes_over_all_at_once() -> None:
    settings = upgrade_settings("blue-green")
    assert settings.get("strategy") == "BLUE_GREEN", "as it was asked for"
    blue_green = mapping(
        node_pool(replace(CPU, upgrades="blue-green")), "upgradeSettings", "blueGreenSettings"
    )
    assert value(blue_green, "standardRolloutPolicy", "batchPercentage") == 1.0, (
        "batch after batch would restart a job once for each"
    )
    assert blue_green["nodePoolSoakDuration"] == "0s", "empty machines with GPUs would be paid for"


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
        ({"machine": MACHINES["n2-standard-8"]}, "n2-standard-8 has 0 GPUs, which contradicts the pool"),
        (
            {"pool": replace(A100_SPOT.pool, name="a" * 41)},
            "node pool's name has at most 40 characters",
        ),
    ],
)
def test_what_gke_would_not_make_is_refused(change: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        replace(A100_SPOT, **change)  # pyright: ignore[reportArgumentType] - one change of any field


def test_only_spot_is_bought_as_spot() -> None:
    for args in (A100_SPOT, CPU):
        is_spot = args.pool.capacity is CapacityType.SPOT
        assert value(node_pool(args), "nodeConfig", "spot") is is_spot, f"{args.pool.name} is what it says"


def test_nodes_carry_their_pools_name() -> None:
    assert node_config(A100_SPOT).get("labels") == {POOL: "a100-spot"}, "jobs select a tier by it"


def test_spot_nodes_are_tainted_and_on_demand_ones_are_not() -> None:
    spot = node_config(A100_SPOT).get("taints")
    assert spot == [{"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"}], (
        "GKE does not do it for a pool made by hand; its own taint of the GPUs is not ours to give"
    )
    assert node_config(CPU).get("taints") == [], "a pod that asks for nothing has somewhere to run"


def test_gpus_come_with_their_driver() -> None:
    expected = [
        {
            "type": "nvidia-tesla-a100",
            "count": 8,
            "gpu_driver_installation_config": {"gpu_driver_version": "DEFAULT"},
        }
    ]
    assert node_config(A100_SPOT).get("guest_accelerators") == expected, "no plugin of ours brings one"
    latest = node_config(replace(A100_SPOT, gpu_driver="latest")).get("guest_accelerators")
    assert "LATEST" in str(latest), "as it was asked for"


def test_attached_gpus_are_declared_like_those_a_machine_brings() -> None:
    machine = with_attached(MACHINES["n1-standard-8"], "nvidia-tesla-t4", 2)
    attached = node_config(replace(A100_SPOT, machine=machine)).get("guest_accelerators")
    assert "'type': 'nvidia-tesla-t4', 'count': 2" in str(attached), "GKE attaches what is declared"


def test_a_machine_without_gpus_declares_none() -> None:
    assert "guest_accelerators" not in node_config(CPU), (
        "an empty list and none are two things to the provider"
    )


@pytest.mark.parametrize(("seconds", "critical"), [(0, 0), (30, 5), (120, 10)])
def test_preempted_nodes_give_their_time_to_user_pods(seconds: GracefulShutdown, critical: int) -> None:
    kubelet = node_config(replace(A100_SPOT, graceful_shutdown_seconds=seconds)).get("kubelet_config")
    assert kubelet == {
        "shutdown_grace_period_seconds": seconds,
        "shutdown_grace_period_critical_pods_seconds": critical,
    }, "GKE's own halves would leave a checkpoint 15 s"
    assert grace_of_user_pods(seconds) == seconds - critical, "what a job may count on"


def test_on_demand_nodes_are_not_given_what_gke_takes_for_spot_alone() -> None:
    assert "kubelet_config" not in node_config(CPU), "GKE refuses it there"


@pytest.mark.parametrize(("name", "disks"), [("a3-highgpu-8g", 16), ("a2-highgpu-8g", None)])
def test_disks_that_the_machine_brings_are_said(name: str, disks: int | None) -> None:
    config = node_config(replace(A100_SPOT, machine=MACHINES[name]))
    expected = None if disks is None else {"local_ssd_count": disks}
    assert config.get("ephemeral_storage_local_ssd_config") == expected, (
        "unsaid, the provider would take them for a change and make the pool anew on every `up`"
    )


@pytest.mark.parametrize(
    ("name", "disk"), [("n2-standard-8", "pd-balanced"), ("c4-standard-8", "hyperdisk-balanced")]
)
def test_the_boot_disk_is_one_that_the_machine_can_start_from(name: str, disk: str) -> None:
    assert node_config(replace(CPU, machine=MACHINES[name])).get("disk_type") == disk, "the other is refused"


@pytest.mark.parametrize("args", [CPU, A100_SPOT], ids=["cpu", "gpu"])
def test_nodes_give_away_nothing_of_their_own(args: GkePoolArgs) -> None:
    config = node_config(args)
    assert config.get("workload_metadata_config") == {"mode": "GKE_METADATA"}, "pods get their own identity"
    assert config.get("service_account") == ACCOUNT, "the default account may do nearly everything"
    assert config.get("shielded_instance_config") == {
        "enable_secure_boot": True,
        "enable_integrity_monitoring": True,
    }, "what starts is what was signed"


def test_a_pool_of_a_compute_class_belongs_to_it_and_to_nothing_else() -> None:
    config = node_config(replace(A100_SPOT, compute_class="a100"))
    assert config.get("labels") == {POOL: "a100-spot", COMPUTE_CLASS: "a100"}, "GKE finds the pool by it"
    taints = config.get("taints")
    assert taints == [{"key": COMPUTE_CLASS, "value": "a100", "effect": "NO_SCHEDULE"}], (
        "GKE makes its pods tolerate that one, and would leave them before another"
    )


SPOT = CapacityType.SPOT
ARGS = GkeComputeClassArgs(
    name="gpus-spot", pools=(pool("a100-spot", capacity=SPOT), pool("h100-spot", capacity=SPOT))
)


def test_it_makes_the_class_and_nothing_else() -> None:
    recording = record(lambda: GkeComputeClass("class-gpus", ARGS))
    made = sorted((resource.type, resource.name) for resource in recording)
    assert made == [
        ("holdfast:index:GkeComputeClass", "class-gpus"),
        ("kubernetes:cloud.google.com/v1:ComputeClass", "class-gpus-compute-class"),
    ], "its pools are there already"
    assert text(recording.one(":ComputeClass"), "metadata", "name") == "gpus-spot", "pods select it by this"


def test_it_holds_its_pools_in_their_order_and_buys_nothing_else() -> None:
    spec = mapping(record(lambda: GkeComputeClass("class-gpus", ARGS)).one(":ComputeClass"), "spec")
    assert spec["priorities"] == [{"nodepools": ["a100-spot"]}, {"nodepools": ["h100-spot"]}], "as listed"
    assert spec["whenUnsatisfiable"] == "DoNotScaleUp", "GKE would buy machines nobody asked for"
    assert value(spec, "nodePoolAutoCreation", "enabled") is False, "nor make pools that are not ours"
    assert value(spec, "activeMigration", "optimizeRulePriority") is False, "a job that trains is not moved"


def test_pools_of_both_capacity_types_are_no_class() -> None:
    with pytest.raises(ValueError, match="different capacity types"):
        replace(ARGS, pools=(*ARGS.pools, pool("a100")))


def test_a_class_without_pools_is_refused() -> None:
    with pytest.raises(ValueError, match="pools is empty"):
        replace(ARGS, pools=())


@pytest.mark.parametrize("name", ["gke-gpus", "autopilot-gpus"])
def test_names_that_gke_keeps_for_itself_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"ComputeClass {name}: names that begin with gke"):
        replace(ARGS, name=name)
