"""Creates the pools of an Azure stack: NodePools of node auto-provisioning, or scale sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.azure.node_pools import AksNodeClassArgs, AksPool, AksPoolArgs, aks_node_class
from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.karpenter_pool import KarpenterPool, KarpenterPoolArgs, node_labels
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.machines.fabrics import unused_network_warnings
from pulumi_holdfast.ladder.pools import spot_pool_warnings, weights
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary, summarize_pool
from pulumi_holdfast.ladder.taints import aks_pool_taints

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_holdfast.azure.config.sections import AzurePlatform, AzurePool
    from pulumi_holdfast.azure.control_plane.component import AksCluster
    from pulumi_holdfast.azure.control_plane.existing import ExistingAksCluster
    from pulumi_holdfast.azure.node_pools import ExistingPool


@dataclass(frozen=True, kw_only=True)
class PoolDependencies:
    """What pools depend on; `tags` are those of every machine, `existing` the scale sets that exist, by name."""

    cluster: AksCluster | ExistingAksCluster
    kubernetes_version: str
    tags: Mapping[str, str]
    existing: Mapping[str, ExistingPool]


def make_pools(
    platform: AzurePlatform, dependencies: PoolDependencies, *, after: pulumi.ResourceOptions
) -> Sequence[pulumi.Resource]:
    """Create every pool, dependent on the resources in `after`.

    Scale sets are created one after the other: AKS locks the virtual network for each, and fails if another one holds
    the lock (https://github.com/Azure/AKS/issues/4522).
    """
    if not platform.has_scale_sets:
        weight = weights(platform.scheduling_pools())
        return [
            _provisioned(pool, platform, dependencies, weight[pool.name], after) for pool in platform.pools
        ]
    made: list[AksPool] = []
    for pool in platform.pools:
        in_turn = pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=made[-1:]))
        made.append(_scale_set(pool, platform, dependencies, in_turn))
    return made


def pool_summaries(platform: AzurePlatform) -> Mapping[str, PoolSummary]:
    """The summary of each pool for the fallback controller, by name, with the taint that AKS adds to spot scale sets."""
    if not platform.has_scale_sets:
        provisioned = [(each, each.as_pool(platform.location)) for each in platform.pools]
        return {
            pool.name: summarize_pool(
                pool,
                config.machines(platform.location),
                pool.taints,
                node_labels(pool, efa=False),
                provisioner=Provisioner.NAP,
                zones=_labelled(config.zones, platform.location),
            )
            for config, pool in provisioned
        }
    found: dict[str, PoolSummary] = {}
    for config in platform.pools:
        pool = config.as_pool(platform.location)
        for machine in config.machines(platform.location):
            taints = aks_pool_taints(capacity=pool.capacity, has_gpus=pool.has_gpus)
            labels = {**node_labels(pool, efa=False), CAPACITY_TYPE: pool.capacity.value}
            zones = _labelled(config.zones, platform.location)
            found[pool.name] = summarize_pool(
                pool, [machine], taints, labels, provisioner=Provisioner.AKS, zones=zones
            )
    return found


def _labelled(zones: Sequence[str], location: str) -> Sequence[str]:
    """Return zones as the label of nodes writes them: `westeurope-1`."""
    return [f"{location}-{zone}" for zone in zones]


def _provisioned(
    config: AzurePool,
    platform: AzurePlatform,
    dependencies: PoolDependencies,
    weight: int,
    after: pulumi.ResourceOptions,
) -> KarpenterPool:
    pool, machines = config.as_pool(platform.location), config.machines(platform.location)
    for warning in (
        *spot_pool_warnings(pool, machines),
        *unused_network_warnings(pool.name, machines, max_nodes=pool.max_nodes),
    ):
        pulumi.log.warn(warning)
    return KarpenterPool(
        naming.pool(config.name),
        KarpenterPoolArgs(
            pool=pool,
            machines=machines,
            node_class=aks_node_class(AksNodeClassArgs(disk_gib=config.disk_gib, tags=dependencies.tags)),
            weight=weight,
            zones=_labelled(config.zones, platform.location),
            roll_out=config.roll_out,
        ),
        opts=after,
    )


def _scale_set(
    config: AzurePool, platform: AzurePlatform, dependencies: PoolDependencies, after: pulumi.ResourceOptions
) -> AksPool:
    machine = machine_catalogue("azure")[config.vm_size]
    for warning in unused_network_warnings(config.name, [machine], max_nodes=config.max_nodes):
        pulumi.log.warn(warning)
    cluster = dependencies.cluster
    return AksPool(
        naming.pool(config.name),
        AksPoolArgs(
            pool=config.as_pool(platform.location),
            machine=machine,
            zones=config.zones,
            cluster=cluster.cluster_reference,
            resource_group=cluster.resource_group,
            subnet_id=cluster.subnet_id,
            kubernetes_version=dependencies.kubernetes_version,
            disk_gib=config.disk_gib,
            spot_max_price=config.price_cap,
            tags=dependencies.tags,
            existing=dependencies.existing.get(config.name),
            reservation_group=None if config.reservation is None else config.reservation.group,
        ),
        opts=after,
    )
