"""What the nodes of a GKE pool are like."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holdfast.components.pools.gke import grace_of_user_pods, node_config
from holdfast.scheduling.labels import COMPUTE_CLASS, POOL
from holdfast.scheduling.machines import with_attached
from tests.support.gke_pools import A100_SPOT, ACCOUNT, CPU, MACHINES

if TYPE_CHECKING:
    from holdfast.components.pools.gke import GkePoolArgs, GracefulShutdown


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
