"""The cost of a stack from its configuration: each cloud's charges without jobs, and the machines of its pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.infra.config.loader import PLATFORM
from holdfast.infra.reachability import shapes_of
from holdfast.scheduling.cost import Charge, StackCost, is_within, priced_pool, tier_costs
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import machine_catalogue
from holdfast.scheduling.prices import CostRange, any_of, charge, machine_price

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.infra.aws.config.sections import AwsPlatform
    from holdfast.infra.azure.config.sections import AzurePlatform
    from holdfast.infra.clouds import Platform
    from holdfast.infra.gcp.config.sections import GcpPlatform
    from holdfast.scheduling.machines import Machine
    from holdfast.scheduling.pools import PoolSummary

#: No recorded spot prices: spot costs between a published share of the list price and the list price.
NO_RECORDS: Final[Mapping[str, CostRange]] = {}


def stack_cost(
    platform: Platform, summaries: Mapping[str, PoolSummary], *, spot: Mapping[str, CostRange] = NO_RECORDS
) -> StackCost:
    """The cost of a stack with these pools; `spot` has recorded spot prices by machine type."""
    ladders = [namespace.as_ladder() for namespace in platform.namespaces]
    machines = _machines_of_pools(platform)
    pools = {
        name: priced_pool(name, summary, machines[name], platform.cloud, spot=spot, ladders=ladders)
        for name, summary in summaries.items()
    }
    return StackCost(
        cloud=platform.cloud,
        idle=idle_charges(platform),
        pools=tuple(pools.values()),
        tiers=tuple(
            cost
            for namespace, ladder in zip(platform.namespaces, ladders, strict=True)
            for cost in tier_costs(namespace.name, ladder, shapes_of(namespace, summaries), pools, summaries)
        ),
    )


def budget_problems(budget: float | None, cost: StackCost) -> Iterator[Problem]:
    """A stack that may cost more with full pools than its budget, or whose cost is not known."""
    most = cost.with_full_pools
    if budget is None or is_within(most, budget):
        return
    if most.high is not None and most.high > budget:
        costliest = max(cost.pools, key=lambda pool: pool.full.high or 0.0)
        yield Problem(
            field=f"{PLATFORM}.budget",
            value=f"{budget:g} USD an hour, for a stack that costs up to {most.high:.2f} with full pools",
            allowed=f"{most.high:.2f} or more",
            fix=f"Lower maxNodes, of {costliest.name} first, whose nodes cost up to {costliest.full.high or 0.0:.2f} together; or raise "
            "the budget.",
        )
    else:
        yield Problem(
            field=f"{PLATFORM}.budget",
            value=f"{budget:g} USD an hour, with prices that are not known: {', '.join(sorted(most.unknown))}",
            allowed="a budget for machines with a known price",
            fix="Declare the price of a node on the tiers that name their pools, leave the machine types out, or remove the budget.",
        )


def _machines_of_pools(platform: Platform) -> Mapping[str, Sequence[Machine]]:
    if platform.cloud == "aws":
        return {pool.name: pool.machines(platform.region) for pool in platform.pools}
    if platform.cloud == "local":
        return {pool.name: pool.machines() for pool in platform.pools}
    if platform.cloud == "gcp":
        return {
            pool.name: () if (machine := pool.machine()) is None else (machine,) for pool in platform.pools
        }
    from holdfast.infra.azure.config.sections import NapPlatform

    if isinstance(platform, NapPlatform):
        return {pool.name: pool.machines(platform.location) for pool in platform.pools}
    return {pool.name: () if (machine := pool.machine()) is None else (machine,) for pool in platform.pools}


def idle_charges(platform: Platform) -> tuple[Charge, ...]:
    """The charges without jobs, excluding an existing cluster, and traffic, storage, logs and keys, which depend on use."""
    if platform.cloud == "aws":
        return tuple(_aws_charges(platform))
    if platform.cloud == "gcp":
        return tuple(_gcp_charges(platform))
    if platform.cloud == "azure":
        return tuple(_azure_charges(platform))
    return ()


def _aws_charges(platform: AwsPlatform) -> Iterator[Charge]:
    from holdfast.components.network.aws import ISOLATED_SERVICES
    from holdfast.infra.aws.config.sections import AwsCluster, AwsNewNetwork, Nat

    cluster, network = platform.cluster, platform.network
    if isinstance(cluster, AwsCluster):
        yield _charge("EKS control plane", f"eks-{cluster.upgrade_policy.value}")
        nodes = cluster.system_nodes
        yield _nodes([machine_catalogue("aws")[name] for name in nodes.instance_types], nodes.count, "aws")
    if isinstance(network, AwsNewNetwork):
        zones = network.zones if isinstance(network.zones, int) else len(network.zones)
        if network.isolated:
            yield _charge("interface endpoint", "aws-endpoint", zones * len(ISOLATED_SERVICES))
        else:
            gateways = zones if network.nat is Nat.PER_ZONE else 1
            yield _charge("NAT gateway", "aws-nat", gateways)
            yield _charge("public address", "aws-address", gateways)


def _gcp_charges(platform: GcpPlatform) -> Iterator[Charge]:
    from holdfast.infra.gcp.config.sections import Channel, GcpCluster, GcpNewNetwork
    from holdfast.infra.gcp.preflight.queries import zones_of_cluster

    cluster = platform.cluster
    if isinstance(cluster, GcpCluster):
        channel = "extended" if cluster.channel is Channel.EXTENDED else "standard"
        yield _charge("GKE control plane", f"gke-{channel}")
        if platform.location != platform.region:
            # A credit of the billing account that pays for one zonal cluster.
            yield _charge("GKE free tier", "gke-free-tier")
        nodes, zones = cluster.system_nodes, len(zones_of_cluster(platform, None))
        least, most = nodes.per_zone * zones, (nodes.per_zone + nodes.spare_per_zone) * zones
        yield _nodes((machine_catalogue("gcp")[nodes.machine_type],), least, "gcp", most=most)
        if isinstance(platform.network, GcpNewNetwork):
            yield _charge("NAT gateway", "gcp-nat")
            yield _charge("public address", "gcp-address")


def _azure_charges(platform: AzurePlatform) -> Iterator[Charge]:
    from holdfast.infra.azure.config.sections import AzureCluster, AzureNewNetwork

    cluster = platform.cluster
    if isinstance(cluster, AzureCluster):
        yield _charge("AKS control plane", "aks-standard")
        nodes = cluster.system_nodes
        yield _nodes((machine_catalogue("azure")[nodes.vm_size],), nodes.count, "azure")
        if isinstance(platform.network, AzureNewNetwork):
            yield _charge("NAT gateway", "azure-nat")
            yield _charge("public address", "azure-address")
    own = () if platform.checkpoints.private_endpoint is None else ("the stack's account",)
    if endpoints := len((*own, *platform.checkpoint_homes)):
        yield _charge("private endpoint", "azure-endpoint", endpoints)


def _charge(title: str, price: str, count: int = 1) -> Charge:
    return Charge(title=title if count == 1 else f"{count} × {title}", cost=charge(price).times(count))


def _nodes(machines: Sequence[Machine], least: int, cloud: str, *, most: int | None = None) -> Charge:
    price = any_of(machine_price(machine, CapacityType.ON_DEMAND, cloud, NO_RECORDS) for machine in machines)
    count = str(least) if most in (None, least) else f"{least} to {most}"
    return Charge(title=f"{count} × system node", cost=price.times(least, most))
