"""Creates the pools of an AWS stack: for each, a Karpenter NodePool and its EC2NodeClass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pulumi

from pulumi_holdfast.aws.config.sections import AwsNewNetwork
from pulumi_holdfast.aws.node_classes import (
    ClusterPlacement,
    Ec2NodeClassArgs,
    EfaFabric,
    EfaFabricArgs,
    ec2_node_class,
)
from pulumi_holdfast.config import naming, versions
from pulumi_holdfast.kubernetes.karpenter_pool import KarpenterPool, KarpenterPoolArgs, node_labels
from pulumi_holdfast.ladder.labels import EFA_RESOURCE
from pulumi_holdfast.ladder.machines.fabrics import unused_network_warnings
from pulumi_holdfast.ladder.pools import spot_pool_warnings, weights
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary, summarize_pool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulumi import Input, Output

    from pulumi_holdfast.aws.config.sections import AwsPlatform, AwsPool
    from pulumi_holdfast.aws.karpenter.component import EksKarpenter
    from pulumi_holdfast.aws.network import Network
    from pulumi_holdfast.kubernetes.karpenter_pool import NodeClass
    from pulumi_holdfast.ladder.machines import Machine

#: The tag that the IAM policy of EKS's block storage driver requires on instances before it attaches a volume.
_VOLUMES: Final = "ebs.csi.aws.com/cluster-name"


@dataclass(frozen=True, kw_only=True)
class PoolDependencies:
    """What pools depend on. `cluster_name` is the physical name; `tags` are those of every instance."""

    cluster_name: str
    security_group_id: Output[str]
    network: Network
    karpenter: EksKarpenter
    tags: Mapping[str, str]


def make_pools(
    platform: AwsPlatform, dependencies: PoolDependencies, *, after: pulumi.ResourceOptions
) -> Sequence[KarpenterPool]:
    """Create every pool, dependent on the resources in `after`, and warn about spot pools with few machine types."""
    fabric = (
        EfaFabric("fabric", EfaFabricArgs(vpc_id=dependencies.network.vpc_id)).security_group_id
        if platform.has_efa
        else None
    )
    weight = weights(platform.scheduling_pools())
    return [
        _pool(pool, platform.region, dependencies, fabric, weight[pool.name], after)
        for pool in platform.pools
    ]


def pool_summaries(platform: AwsPlatform) -> Mapping[str, PoolSummary]:
    """The summary of each pool for the fallback controller, by name."""
    found: dict[str, PoolSummary] = {}
    network = platform.network
    # A number of zones chooses among those that the account has, which are not known here.
    named = network.zone_names(()) if isinstance(network, AwsNewNetwork) else ()
    for config in platform.pools:
        pool = config.as_pool(platform.region)
        labels = node_labels(pool, efa=config.efa)
        machines = config.machines(platform.region)
        found[pool.name] = summarize_pool(
            pool, machines, pool.taints, labels, provisioner=Provisioner.EKS, zones=config.zones or named
        )
    return found


def _pool(
    config: AwsPool,
    region: str,
    dependencies: PoolDependencies,
    fabric: Output[str] | None,
    weight: int,
    after: pulumi.ResourceOptions,
) -> KarpenterPool:
    pool, machines = config.as_pool(region), config.machines(region)
    for warning in (
        *spot_pool_warnings(pool, machines),
        *adapter_warnings(config, machines),
        *unused_network_warnings(pool.name, machines, max_nodes=pool.max_nodes, uses_adapters=config.efa),
    ):
        pulumi.log.warn(warning)
    if config.efa and len(config.zones or ()) != 1:
        pulumi.log.info(
            f"pool {config.name} has fabric adapters, whose traffic does not cross zones: admission keeps each job that "
            f"requests {EFA_RESOURCE} in one zone, which must have capacity for all its pods."
        )
    return KarpenterPool(
        naming.pool(config.name),
        KarpenterPoolArgs(
            pool=pool,
            machines=machines,
            node_class=_node_class(config, dependencies, fabric),
            weight=weight,
            zones=config.zones or (),
            efa=config.efa,
            roll_out=config.roll_out,
            reservation=None if config.reservation is None else config.reservation.id,
        ),
        opts=after,
    )


def adapter_warnings(config: AwsPool, machines: Sequence[Machine]) -> Iterator[str]:
    """The warning about a pool whose machine types have different numbers of fabric adapters."""
    counts = {machine.name: machine.efa_interfaces for machine in machines}
    if not config.efa or len(set(counts.values())) < 2:
        return
    fewest = min(counts.values())
    listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
    more = ", ".join(name for name, count in counts.items() if count > fewest)
    yield (
        f"pool {config.name} buys machines with different numbers of fabric adapters ({listed}). A pod that requests more "
        f"than {fewest} {EFA_RESOURCE} runs on {more} only, and one that requests {fewest} leaves adapters of these "
        "unused. Make a pool for each number, or request the smallest."
    )


def _node_class(config: AwsPool, dependencies: PoolDependencies, fabric: Output[str] | None) -> NodeClass:
    placement = ClusterPlacement(naming.placement(config.name)) if config.compact_placement else None
    groups: list[Input[str]] = [dependencies.security_group_id]
    if config.efa and fabric is not None:
        groups.append(fabric)
    profile = dependencies.karpenter.instance_profile
    return ec2_node_class(
        Ec2NodeClassArgs(
            node_role=dependencies.karpenter.node_role_name if profile is None else None,
            instance_profile=profile,
            subnet_ids=dependencies.network.private_subnet_ids,
            security_group_ids=groups,
            ami_alias=f"al2023@v{versions.NODE_IMAGE_RELEASE}",
            volume_gib=config.disk_gib,
            placement_group=placement.placement_group_id if placement is not None else None,
            tags={**dependencies.tags, _VOLUMES: dependencies.cluster_name},
        )
    )
