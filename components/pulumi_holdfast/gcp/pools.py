"""Pools on Google Cloud: node pools and ComputeClasses, and their summaries for the fallback controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import pulumi
from pulumi import ComponentResource, ResourceOptions
from pulumi_gcp.container import NodePool

from pulumi_holdfast.config import naming
from pulumi_holdfast.gcp.config.sections import GcpCluster
from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.ladder.labels import COMPUTE_CLASS, POOL, CapacityType
from pulumi_holdfast.ladder.machines import boot_disk_of, can_be_placed_compactly
from pulumi_holdfast.ladder.machines.market import unused_network_warnings
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary, summarize_pool
from pulumi_holdfast.ladder.taints import GPU, gke_pool_taints

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

    from pulumi_holdfast.gcp.config.sections import GcpPlatform, GcpPool
    from pulumi_holdfast.gcp.control_plane.component import ExistingGkeCluster, GkeCluster
    from pulumi_holdfast.gcp.preflight.checks import Project
    from pulumi_holdfast.ladder.json import Json
    from pulumi_holdfast.ladder.machines import Machine
    from pulumi_holdfast.ladder.pools import Pool

#: `surge`: one node at a time in place, for machines without spare capacity. `blue-green`: a second set of
#: nodes is created first, and all pods move at once.
Upgrades: TypeAlias = Literal["surge", "blue-green"]

#: The seconds that GKE gives a preempted node.
GracefulShutdown: TypeAlias = Literal[0, 30, 120]

#: The driver version, of those that come with the node image.
GpuDriver: TypeAlias = Literal["default", "latest"]

_LONGEST_NAME: Final = 40


@dataclass(frozen=True, kw_only=True)
class GkeReservation:
    """A specifically targeted reservation: its name, or its path if it belongs to another project."""

    name: str


@dataclass(frozen=True, kw_only=True)
class GkeFlexStart:
    """Machines of the Dynamic Workload Scheduler, which run for `max_run_seconds` at most."""

    max_run_seconds: int


@dataclass(frozen=True, kw_only=True)
class GkePoolArgs:
    """The pool's facts, its machine type with the attached GPUs, and its zones (one or more).

    `cluster` is the cluster's name, `location` its region or zone, `node_service_account` the e-mail of the
    nodes' account, `disk_gib` the boot disk's size. `compact_placement` puts the nodes close to each other in
    one zone; changing it, or the zone then, replaces the pool. `graceful_shutdown_seconds` is the time that a
    preempted node has, including the system pods; on-demand pools ignore it. `compute_class` is the
    ComputeClass of the pool. With `image_streaming` containers start while their images are still being pulled
    from Artifact Registry. `source` is where the machines of a reserved pool come from.

    Raises ValueError for a pool that GKE would reject.
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
    image_streaming: bool = True
    source: GkeReservation | GkeFlexStart | None = None

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ValueError(f"pool {self.pool.name}: {problem}")


class GkePool(ComponentResource):
    """Nodes of one machine type and capacity type that scale with the pods that select them.

    Type token `holdfast:index:GkePool`. Creates a node pool with the pool's name, with no nodes at first and
    at most `max_nodes` across its zones. Spot nodes are tainted here. GKE taints GPU nodes only if the
    cluster already has a pool without GPUs: create this one after the system pool.
    """

    def __init__(self, name: str, args: GkePoolArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:GkePool", name, None, opts)
        is_flexible = isinstance(args.source, GkeFlexStart)
        takes_any_zone = args.pool.capacity is CapacityType.SPOT or is_flexible
        NodePool(
            f"{name}-node-pool",
            name=args.pool.name,
            cluster=args.cluster,
            project=args.project,
            location=args.location,
            node_locations=sorted(args.zones),
            initial_node_count=0,
            # The autoscaler sets the number of nodes; without this it would show as a change.
            ignore_node_count_changes=True,
            autoscaling={
                "total_min_node_count": 0,
                "total_max_node_count": args.pool.max_nodes,
                # Spot nodes and those of flex-start come from any zone with capacity, others evenly from all zones.
                "location_policy": "ANY" if takes_any_zone else "BALANCED",
            },
            # GKE does not repair machines of flex-start, and upgrades them by its own strategy.
            management={"auto_repair": not is_flexible, "auto_upgrade": True},
            upgrade_settings=None if is_flexible else upgrade_settings(args.upgrades),
            network_config={"enable_private_nodes": True},
            node_config=node_config(args),
            placement_policy={"type": "COMPACT"} if args.compact_placement else None,
            opts=ResourceOptions(
                parent=self,
                # GKE stores the size of the last manual resize here, and the provider would replace the pool.
                ignore_changes=["initialNodeCount"],
                # The name is fixed, so the old pool must be deleted first.
                delete_before_replace=True,
                replace_on_changes=["nodeLocations"] if args.compact_placement else None,
            ),
        )
        self.register_outputs({})


def upgrade_settings(upgrades: Upgrades) -> NodePoolUpgradeSettingsArgsDict:
    """Return how GKE upgrades the nodes.

    Disruption budgets delay it by at most an hour: for a job an upgrade is one more preemption.
    """
    if upgrades == "surge":
        return {"strategy": "SURGE", "max_surge": 0, "max_unavailable": 1}
    return {
        "strategy": "BLUE_GREEN",
        "blue_green_settings": {
            # A job restarts when any of its nodes is drained: several batches would cost one restart each.
            "standard_rollout_policy": {"batch_percentage": 1.0, "batch_soak_duration": "0s"},
            "node_pool_soak_duration": "0s",
        },
    }


def _problems(args: GkePoolArgs) -> Iterator[str]:
    machine, pool = args.machine, args.pool
    if len(pool.name) > _LONGEST_NAME:
        yield f"a GKE node pool's name has at most {_LONGEST_NAME} characters"
    if not args.zones:
        yield "zones is empty: add a zone"
    if pool.has_gpus != bool(machine.gpus):
        yield f"{machine.name} has {machine.gpus} GPUs, which contradicts the pool"
    if (pool.capacity is CapacityType.RESERVED) != (args.source is not None):
        yield "a reserved pool, and no other, needs source: set both or neither"
    if isinstance(args.source, GkeReservation) and len(args.zones) != 1:
        yield "a reservation is in exactly one zone"
    if args.compact_placement and len(args.zones) != 1:
        yield "compact placement needs exactly one zone"
    if args.compact_placement and args.upgrades == "blue-green":
        yield "compact placement does not support blue-green upgrades"
    if args.compact_placement and not can_be_placed_compactly(machine):
        yield f"{machine.name} does not support compact placement"


#: The service account's roles define the permissions.
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"

#: The seconds of a preempted node, and how many of them are for critical pods, which are few here. GKE's
#: default is half, which would leave user pods 15 s of 30.
_CRITICAL_SECONDS: Final[Mapping[int, int]] = {0: 0, 30: 5, 120: 10}

_EFFECTS: Final = {"NoSchedule": "NO_SCHEDULE"}


def grace_of_user_pods(shutdown_seconds: int) -> int:
    """Return the seconds that user pods have on a preempted node with this many seconds."""
    return shutdown_seconds - _CRITICAL_SECONDS[shutdown_seconds]


def node_config(args: GkePoolArgs) -> NodePoolNodeConfigArgsDict:
    """Return the configuration of the pool's nodes.

    Local disks and the network card are listed although GKE attaches them itself: the provider treats
    unlisted ones as removed and would replace the pool on every `up`.
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
        # Newer machines have no other network card, and older ones need it for their full bandwidth.
        "gvnic": {"enabled": True},
        "gcfs_config": {"enabled": args.image_streaming},
    }
    machine = args.machine
    if machine.accelerator is not None:
        config["guest_accelerators"] = [_accelerator(machine.accelerator, args)]
    if machine.local_ssds:
        # GKE uses the machine's local disks as ephemeral storage of pods.
        config["ephemeral_storage_local_ssd_config"] = {"local_ssd_count": machine.local_ssds}
    if args.pool.capacity is CapacityType.SPOT:
        # GKE rejects it for on-demand pools.
        config["kubelet_config"] = _kubelet(args.graceful_shutdown_seconds)
    match args.source:
        case GkeReservation(name=reservation):
            config["reservation_affinity"] = {
                "consume_reservation_type": "SPECIFIC_RESERVATION",
                "key": "compute.googleapis.com/reservation-name",
                "values": [reservation],
            }
        case GkeFlexStart(max_run_seconds=seconds):
            config["reservation_affinity"] = {"consume_reservation_type": "NO_RESERVATION"}
            config["flex_start"] = True
            config["max_run_duration"] = f"{seconds}s"
        case None:
            pass
    return config


def node_labels(args: GkePoolArgs) -> Mapping[str, str]:
    """Return the labels of the pool's nodes, besides those that GKE adds."""
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


#: Prefixes of GKE's own ComputeClasses.
_RESERVED: Final = ("gke", "autopilot")


@dataclass(frozen=True, kw_only=True)
class GkeComputeClassArgs:
    """The pools of the class, one or more, in GKE's order; each must name the class.

    Raises ValueError for pools of different capacity types and for a reserved name.
    """

    name: str
    pools: Sequence[Pool]

    def __post_init__(self) -> None:
        for problem in _class_problems(self):
            raise ValueError(f"ComputeClass {self.name}: {problem}")


class GkeComputeClass(ComponentResource):
    """Pools of one capacity type that pods select together (`holdfast:index:GkeComputeClass`).

    Creates the ComputeClass, selected by `cloud.google.com/compute-class`. GKE rejects pods that select both
    a class and one of GKE's spot labels.
    """

    def __init__(self, name: str, args: GkeComputeClassArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:GkeComputeClass", name, None, opts)
        KubernetesObject(
            f"{name}-compute-class",
            "cloud.google.com/v1",
            "ComputeClass",
            {"metadata": {"name": args.name}, "spec": compute_class_spec(args)},
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


def compute_class_spec(args: GkeComputeClassArgs) -> Json:
    """Return the specification of the class: only these pools."""
    return {
        "priorities": [{"nodepools": [pool.name]} for pool in args.pools],
        # Otherwise GKE would create machines of any type when these are unavailable.
        "whenUnsatisfiable": "DoNotScaleUp",
        # Returned capacity in a better pool must not move a running job.
        "activeMigration": {"optimizeRulePriority": False},
        "nodePoolAutoCreation": {"enabled": False},
    }


def _class_problems(args: GkeComputeClassArgs) -> Iterator[str]:
    if not args.pools:
        yield "pools is empty: add a pool"
    if len({pool.capacity for pool in args.pools}) > 1:
        yield (
            "its pools have different capacity types. GKE chooses a pool for each node, so a job's pods could run on "
            "both without its ladder: use one capacity type"
        )
    if args.name.startswith(_RESERVED):
        yield f"names that begin with {' or '.join(_RESERVED)} are reserved by GKE: choose another name"


def make_pools(
    platform: GcpPlatform,
    project: Project,
    cluster: GkeCluster | ExistingGkeCluster,
    *,
    parent: pulumi.Resource,
) -> Sequence[GkePool]:
    """Create every pool of the training cluster `parent`, after the system pool: GKE taints GPU nodes only if the cluster has a pool without GPUs."""
    after = pulumi.ResourceOptions(parent=parent, depends_on=[cluster])
    name = parent.pulumi_resource_name
    return [
        _pool(naming.pool(name, pool.name), pool, platform, project, cluster, after)
        for pool in platform.pools
    ]


def make_classes(
    platform: GcpPlatform, pools: Sequence[GkePool], *, cluster: str, after: pulumi.ResourceOptions
) -> Sequence[GkeComputeClass]:
    """Create the ComputeClasses that the pools of `cluster` name, after those pools."""
    opts = pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[*pools]))
    return [
        GkeComputeClass(
            naming.compute_class(cluster, name), GkeComputeClassArgs(name=name, pools=members), opts=opts
        )
        for name, members in platform.classes().items()
    ]


def pool_summaries(platform: GcpPlatform) -> Mapping[str, PoolSummary]:
    """The summary of each pool for the fallback controller, by name, with the taint that GKE adds to GPU nodes."""
    found: dict[str, PoolSummary] = {}
    named = platform.cluster.zones if isinstance(platform.cluster, GcpCluster) else None
    for config in platform.pools:
        pool, machine, of_class = config.as_pool(), config.machine(), config.compute_class
        declared = gke_pool_taints(capacity=pool.capacity, compute_class=of_class)
        taints = (*declared, *([GPU] if pool.has_gpus else []))
        labels = {} if of_class is None else {COMPUTE_CLASS: of_class}
        if machine is not None:
            found[pool.name] = summarize_pool(
                pool, [machine], taints, labels, provisioner=Provisioner.GKE, zones=config.zones or named
            )
    return found


def _pool(
    name: str,
    config: GcpPool,
    platform: GcpPlatform,
    project: Project,
    cluster: GkeCluster | ExistingGkeCluster,
    after: pulumi.ResourceOptions,
) -> GkePool:
    machine = config.machine()
    if machine is None:
        raise ValueError(f"machine type {config.machine_type} is unknown; validation must reject it")
    for warning in unused_network_warnings(config.name, [machine], max_nodes=config.max_nodes):
        pulumi.log.warn(warning)
    return GkePool(
        name,
        GkePoolArgs(
            pool=config.as_pool(),
            machine=machine,
            zones=config.zones or project.cluster_zones,
            cluster=cluster.cluster_name,
            project=platform.project,
            location=platform.location,
            node_service_account=cluster.node_service_account_email,
            upgrades=config.upgrades.value,
            disk_gib=config.disk_gib,
            compact_placement=config.compact_placement,
            graceful_shutdown_seconds=config.shutdown_seconds,
            compute_class=config.compute_class,
            image_streaming=platform.cluster.image_streaming,
            source=_source(config),
        ),
        opts=after,
    )


def _source(config: GcpPool) -> GkeReservation | GkeFlexStart | None:
    if config.reservation is not None:
        return GkeReservation(name=config.reservation.name)
    if config.flex_start is not None:
        return GkeFlexStart(max_run_seconds=int(config.flex_start.max_run_duration.total_seconds()))
    return None
