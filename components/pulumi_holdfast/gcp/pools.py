"""Creates the pools of a GCP stack: GKE node pools, and the ComputeClasses that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.config import naming
from pulumi_holdfast.gcp.config.sections import GcpCluster
from pulumi_holdfast.gcp.node_pools import (
    GkeComputeClass,
    GkeComputeClassArgs,
    GkeFlexStart,
    GkePool,
    GkePoolArgs,
    GkeReservation,
)
from pulumi_holdfast.ladder.labels import COMPUTE_CLASS
from pulumi_holdfast.ladder.machines.fabrics import unused_network_warnings
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary, summarize_pool
from pulumi_holdfast.ladder.taints import GPU, gke_pool_taints

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_holdfast.gcp.config.sections import GcpPlatform, GcpPool
    from pulumi_holdfast.gcp.control_plane.component import GkeCluster
    from pulumi_holdfast.gcp.control_plane.existing import ExistingGkeCluster
    from pulumi_holdfast.gcp.preflight import Project


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
