"""What the nodes of a GKE pool are like. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.scheduling.labels import COMPUTE_CLASS, POOL, CapacityType
from holdfast.scheduling.machines import boot_disk_of
from holdfast.scheduling.taints import gke_pool_taints

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_gcp.container import (
        NodePoolNodeConfigArgsDict,
        NodePoolNodeConfigGuestAcceleratorArgsDict,
        NodePoolNodeConfigKubeletConfigArgsDict,
        NodePoolNodeConfigTaintArgsDict,
    )

    from holdfast.components.pools.gke import GkePoolArgs

#: What a node may do is decided by its service account's roles alone.
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"

#: The whole of what GKE gives a preempted node, and what of it is kept for the cluster's own pods, which are few here:
#: user pods get the rest. GKE's own halves would leave them 15 s of 30.
_CRITICAL_SECONDS: Final[Mapping[int, int]] = {0: 0, 30: 5, 120: 10}

_EFFECTS: Final = {"NoSchedule": "NO_SCHEDULE"}


def grace_of_user_pods(shutdown_seconds: int) -> int:
    """How long the pods of a preempted node have, of so many seconds that the node has itself."""
    return shutdown_seconds - _CRITICAL_SECONDS[shutdown_seconds]


def node_config(args: GkePoolArgs) -> NodePoolNodeConfigArgsDict:
    """The configuration of a pool's nodes.

    Local disks and network card are said although GKE attaches them by itself: the provider takes what it finds in GKE
    and not in the program for something that the program no longer wants, and would make the pool anew on every `up`.
    """
    config: NodePoolNodeConfigArgsDict = {
        "machine_type": args.machine.name,
        "disk_type": boot_disk_of(args.machine),
        "disk_size_gb": args.disk_gib,
        "image_type": "COS_CONTAINERD",
        "spot": args.pool.capacity is CapacityType.SPOT,
        "labels": node_labels(args),
        "taints": _taints(args),
        "service_account": args.node_service_account,
        "oauth_scopes": [_SCOPE],
        # Pods get the identity of their service account, never the node's.
        "workload_metadata_config": {"mode": "GKE_METADATA"},
        "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
        # Newer machines have no other network card, and the older ones reach their full bandwidth only with it.
        "gvnic": {"enabled": True},
    }
    machine = args.machine
    if machine.accelerator is not None:
        config["guest_accelerators"] = [_accelerator(machine.accelerator, args)]
    if machine.local_ssds:
        # GKE makes the disks that a machine brings its pods' scratch space.
        config["ephemeral_storage_local_ssd_config"] = {"local_ssd_count": machine.local_ssds}
    if args.pool.capacity is CapacityType.SPOT:
        # On demand GKE takes no such thing.
        config["kubelet_config"] = _kubelet(args.graceful_shutdown_seconds)
    return config


def node_labels(args: GkePoolArgs) -> Mapping[str, str]:
    """The labels of a pool's nodes, besides those that GKE gives every node."""
    of_class = {COMPUTE_CLASS: args.compute_class} if args.compute_class is not None else {}
    return {POOL: args.pool.name, **of_class}


def _taints(args: GkePoolArgs) -> Sequence[NodePoolNodeConfigTaintArgsDict]:
    declared = gke_pool_taints(capacity=args.pool.capacity, compute_class=args.compute_class)
    return [{"key": taint.key, "value": taint.value, "effect": _EFFECTS[taint.effect]} for taint in declared]


def _accelerator(kind: str, args: GkePoolArgs) -> NodePoolNodeConfigGuestAcceleratorArgsDict:
    return {
        "type": kind,
        "count": args.machine.gpus,
        "gpu_driver_installation_config": {"gpu_driver_version": args.gpu_driver.upper()},
    }


def _kubelet(shutdown_seconds: int) -> NodePoolNodeConfigKubeletConfigArgsDict:
    return {
        "shutdown_grace_period_seconds": shutdown_seconds,
        "shutdown_grace_period_critical_pods_seconds": _CRITICAL_SECONDS[shutdown_seconds],
    }
