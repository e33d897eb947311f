"""A pool of GKE: one node pool, kept by the cluster's own autoscaler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pulumi import ComponentResource, ResourceOptions
from pulumi_gcp.container import NodePool
from pulumi_kubernetes.apiextensions import CustomResource

from holdfast.scheduling.labels import COMPUTE_CLASS, POOL, CapacityType
from holdfast.scheduling.machines import boot_disk_of, can_be_placed_compactly
from holdfast.scheduling.taints import gke_pool_taints

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulumi import Input
    from pulumi_gcp.container import (
        NodePoolNodeConfigArgsDict,
        NodePoolNodeConfigGuestAcceleratorArgsDict,
        NodePoolNodeConfigKubeletConfigArgsDict,
        NodePoolNodeConfigTaintArgsDict,
        NodePoolUpgradeSettingsArgsDict,
    )

    from holdfast.scheduling.json import Json
    from holdfast.scheduling.machines import Machine
    from holdfast.scheduling.pools import Pool


#: `surge`: node by node in place, for machines of which there are no more to be had. `blue-green`: a second set of nodes
#: is bought first, and all pods move at once.
Upgrades: TypeAlias = Literal["surge", "blue-green"]

#: The seconds that GKE lets a preempted node have.
GracefulShutdown: TypeAlias = Literal[0, 30, 120]

#: Which of the drivers that belong to the node's image.
GpuDriver: TypeAlias = Literal["default", "latest"]

_LONGEST_NAME: Final = 40


@dataclass(frozen=True, kw_only=True)
class GkePoolArgs:
    """A pool's facts, its one machine type (with the GPUs attached to it), and the zones of its nodes (one or more).

    `cluster` is the cluster's name, `location` its region or zone, `node_service_account` the e-mail of the account that
    the nodes have. `disk_gib` is the boot disk's size. `compact_placement`: in one zone, close to each other; to change it,
    or the zone then, is to replace the pool. `graceful_shutdown_seconds`: what a preempted node has, the
    cluster's own pods included; on demand it means nothing. `compute_class`: the ComputeClass by which pods reach the pool.

    Raises ValueError where GKE has no such pool.
    """

    pool: Pool
    machine: Machine
    zones: Sequence[str]
    cluster: Input[str]
    project: str
    location: str
    node_service_account: Input[str]
    upgrades: Upgrades
    disk_gib: int
    compact_placement: bool = False
    graceful_shutdown_seconds: GracefulShutdown = 30
    gpu_driver: GpuDriver = "default"
    compute_class: str | None = None

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ValueError(f"pool {self.pool.name}: {problem}")


class GkePool(ComponentResource):
    """Nodes of one machine type and one capacity type that come and go with the pods which select them.

    Creates a node pool under the pool's name, with no nodes at first and no more than `max_nodes` in all its zones. Its
    spot nodes are tainted here; GPU nodes are tainted by GKE, if the cluster has a pool without GPUs by then: make it
    after the cluster's system pool.
    """

    def __init__(self, name: str, args: GkePoolArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:GkePool", name, None, opts)
        is_spot = args.pool.capacity is CapacityType.SPOT
        NodePool(
            f"{name}-node-pool",
            name=args.pool.name,
            cluster=args.cluster,
            project=args.project,
            location=args.location,
            node_locations=sorted(args.zones),
            initial_node_count=0,
            # The number of nodes is the autoscaler's: it is not looked up, so that it never shows as a change.
            ignore_node_count_changes=True,
            autoscaling={
                "total_min_node_count": 0,
                "total_max_node_count": args.pool.max_nodes,
                # Spot nodes come from wherever there are some, the others evenly from all zones.
                "location_policy": "ANY" if is_spot else "BALANCED",
            },
            management={"auto_repair": True, "auto_upgrade": True},
            upgrade_settings=upgrade_settings(args.upgrades),
            network_config={"enable_private_nodes": True},
            node_config=node_config(args),
            placement_policy={"type": "COMPACT"} if args.compact_placement else None,
            opts=ResourceOptions(
                parent=self,
                # GKE keeps the number that a pool was last resized to by hand here, and the provider would replace it.
                ignore_changes=["initialNodeCount"],
                # The name is the user's own: its successor can only follow.
                delete_before_replace=True,
                replace_on_changes=["nodeLocations"] if args.compact_placement else None,
            ),
        )
        self.register_outputs({})


def upgrade_settings(upgrades: Upgrades) -> NodePoolUpgradeSettingsArgsDict:
    """How GKE brings a new version to the nodes.

    Disruption budgets hold it up for an hour at most: a job that trains sees an upgrade as one more preemption.
    """
    if upgrades == "surge":
        return {"strategy": "SURGE", "max_surge": 0, "max_unavailable": 1}
    return {
        "strategy": "BLUE_GREEN",
        "blue_green_settings": {
            # A job restarts when any of its nodes goes: batch after batch would cost it one restart for each.
            "standard_rollout_policy": {"batch_percentage": 1.0, "batch_soak_duration": "0s"},
            "node_pool_soak_duration": "0s",
        },
    }


def _problems(args: GkePoolArgs) -> Iterator[str]:
    machine, pool = args.machine, args.pool
    if len(pool.name) > _LONGEST_NAME:
        yield f"GKE's names for node pools have at most {_LONGEST_NAME} characters"
    if not args.zones:
        yield "it needs a zone"
    if pool.has_gpus != bool(machine.gpus):
        yield f"{machine.name} has {machine.gpus} GPUs, and the pool says otherwise"
    if args.compact_placement and len(args.zones) != 1:
        yield "machines close to each other are in exactly one zone"
    if args.compact_placement and not can_be_placed_compactly(machine):
        yield f"machines of {machine.name} cannot be placed close to each other"


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


#: GKE's own classes are called so.
_RESERVED: Final = ("gke", "autopilot")


@dataclass(frozen=True, kw_only=True)
class GkeComputeClassArgs:
    """The pools of the class, one or more, in the order in which GKE tries them; each must name the class itself.

    Raises ValueError for pools of different capacity types, and for a name that GKE keeps for itself.
    """

    name: str
    pools: Sequence[Pool]

    def __post_init__(self) -> None:
        for problem in _class_problems(self):
            raise ValueError(f"ComputeClass {self.name}: {problem}")


class GkeComputeClass(ComponentResource):
    """Pools of one capacity type that pods select as one, by `cloud.google.com/compute-class`.

    Creates the ComputeClass. GKE refuses pods that select by it and by one of GKE's labels for spot at once.
    """

    def __init__(self, name: str, args: GkeComputeClassArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:GkeComputeClass", name, None, opts)
        CustomResource(
            f"{name}-compute-class",
            api_version="cloud.google.com/v1",
            kind="ComputeClass",
            metadata={"name": args.name},
            spec=compute_class_spec(args),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


def compute_class_spec(args: GkeComputeClassArgs) -> Json:
    """What the class says: these pools and nothing else, ever."""
    return {
        "priorities": [{"nodepools": [pool.name]} for pool in args.pools],
        # Otherwise GKE would buy any machine at all when none of these is to be had.
        "whenUnsatisfiable": "DoNotScaleUp",
        # A better pool that has room again is no reason to stop a job that trains.
        "activeMigration": {"optimizeRulePriority": False},
        "nodePoolAutoCreation": {"enabled": False},
    }


def _class_problems(args: GkeComputeClassArgs) -> Iterator[str]:
    if not args.pools:
        yield "it needs a pool"
    if len({pool.capacity for pool in args.pools}) > 1:
        yield (
            "its pools are of more than one capacity type. GKE goes on to the next pool at once and for each node "
            "by itself: a job's pods would be on both, and its ladder would know nothing of it"
        )
    if args.name.startswith(_RESERVED):
        yield f"GKE keeps names that begin with {' or '.join(_RESERVED)} for itself"
