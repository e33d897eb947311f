"""The cost of a stack from its configuration: each cloud's charges without jobs, the machines of its pools, and its texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.reachability import shapes_of
from pulumi_holdfast.config.storage import VolumeKind
from pulumi_holdfast.ladder.cost import (
    Charge,
    StackCost,
    TierCost,
    gang_cost,
    is_within,
    priced_pool,
    tier_costs,
)
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.prices import (
    CostRange,
    any_of,
    charge,
    exactly,
    least_spot_share,
    machine_price,
    price_region,
    unpriced,
)

if TYPE_CHECKING:
    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.azure.config.sections import AzurePlatform
    from pulumi_holdfast.clouds import Platform
    from pulumi_holdfast.gcp.config.sections import GcpPlatform
    from pulumi_holdfast.ladder.machines import Machine
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary

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
            allowed="a budget for machines and volumes with a known price",
            fix="Declare the price of a node on the tiers that name their pools, and of a volume on it, as `price`; leave the machine "
            "types out; or remove the budget.",
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
    return {pool.name: pool.machines(platform.location) for pool in platform.pools}


def idle_charges(platform: Platform) -> tuple[Charge, ...]:
    """The charges without jobs, excluding an existing cluster, and traffic, buckets, logs and keys, which depend on use."""
    if platform.cloud == "aws":
        return (*_aws_charges(platform), *_file_systems(platform))
    if platform.cloud == "gcp":
        return (*_gcp_charges(platform), *_file_systems(platform))
    if platform.cloud == "azure":
        return (*_azure_charges(platform), *_file_systems(platform))
    return ()


def _aws_charges(platform: AwsPlatform) -> Iterator[Charge]:
    from pulumi_holdfast.aws.config.sections import AwsCluster, AwsNewNetwork, Nat
    from pulumi_holdfast.aws.network import ISOLATED_SERVICES

    cluster, network = platform.cluster, platform.network
    if isinstance(cluster, AwsCluster):
        yield _charge("EKS control plane", f"eks-{cluster.upgrade_policy.value}")
        yield _nodes(platform.system_machines(), cluster.system_nodes.count, "aws")
    if isinstance(network, AwsNewNetwork):
        zones = network.zones if isinstance(network.zones, int) else len(network.zones)
        if network.isolated:
            yield _charge("interface endpoint", "aws-endpoint", zones * len(ISOLATED_SERVICES))
        else:
            gateways = zones if network.nat is Nat.PER_ZONE else 1
            yield _charge("NAT gateway", "aws-nat", gateways)
            yield _charge("public address", "aws-address", gateways)


def _gcp_charges(platform: GcpPlatform) -> Iterator[Charge]:
    from pulumi_holdfast.gcp.config.sections import Channel, GcpCluster, GcpNewNetwork
    from pulumi_holdfast.gcp.preflight.quotas import zones_of_cluster

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
    from pulumi_holdfast.azure.config.sections import AzureCluster, AzureNewNetwork

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


def _file_systems(platform: AwsPlatform | GcpPlatform | AzurePlatform) -> Iterator[Charge]:
    """The volumes with a price or a size; those that grow with their files, and buckets, depend on use."""
    for volume in platform.storage:
        title = f"volume {volume.name}"
        if volume.price is not None:
            yield Charge(title=title, cost=exactly(volume.price))
        elif volume.size_gib is not None:
            tier = f"-{volume.throughput}" if volume.kind is VolumeKind.PARALLEL else ""
            price = charge(f"{platform.cloud}-{volume.kind.value}{tier}")
            cost = unpriced(title) if price.unknown else price.times(volume.size_gib / _TIB)
            yield Charge(title=f"{title}, {volume.size_gib} GiB", cost=cost)


def _charge(title: str, price: str, count: int = 1) -> Charge:
    return Charge(title=title if count == 1 else f"{count} × {title}", cost=charge(price).times(count))


def _nodes(machines: Sequence[Machine], least: int, cloud: str, *, most: int | None = None) -> Charge:
    price = any_of(machine_price(machine, CapacityType.ON_DEMAND, cloud, NO_RECORDS) for machine in machines)
    count = str(least) if most in (None, least) else f"{least} to {most}"
    return Charge(title=f"{count} × system node", cost=price.times(least, most))


#: What no estimate has, because it depends on use.
NOT_COUNTED: Final = "Not counted: traffic, stored bytes, logs, keys, taxes and discounts of your contract."

_HOURS_OF_A_MONTH: Final = 730

#: In GiB; the charges of file systems are for one.
_TIB: Final = 1024


def summary(cost: StackCost) -> str:
    """One sentence for a preview's log."""
    return (
        f"cost: {cost.without_jobs} USD an hour without jobs, {_most(cost.with_full_pools)} with full pools"
        f"{_month(cost.with_full_pools)}{_unknown_clause(cost)}. `holdfast cost STACK` shows the parts."
    )


def cost_report(cost: StackCost, region: str) -> Iterator[str]:
    """The lines of `holdfast cost`: the charges without jobs, the pools, and each shape on each tier."""
    yield "USD an hour"
    yield ""
    yield from _table(
        [
            ("without jobs", "cost"),
            *((each.title, str(each.cost)) for each in cost.idle),
            ("together", str(cost.without_jobs)),
        ]
    )
    yield ""
    yield from _table(
        [
            ("pool", "capacity", "a node", "nodes", "all nodes"),
            *(
                (pool.name, pool.capacity.value, str(pool.node), f"0 to {pool.max_nodes}", _most(pool.full))
                for pool in cost.pools
            ),
        ]
    )
    if cost.tiers:
        yield ""
        yield from _table(
            [
                ("namespace", "shape", "tier", "nodes", "the gang", "saves"),
                *(
                    (
                        each.namespace,
                        each.shape,
                        f"{each.tier} {each.pool}",
                        _nodes_of_tier(each),
                        str(each.cost) if each.nodes else "does not fit",
                        _saving(each, cost),
                    )
                    for each in cost.tiers
                ),
                *(
                    (namespace, shape, "any time", "", _most(gang_cost(tiers)), "")
                    for (namespace, shape), tiers in _by_shape(cost).items()
                ),
            ]
        )
    yield ""
    yield f"{_most(cost.with_full_pools)} USD an hour at most, with full pools{_unknown_clause(cost)}."
    yield from _notes(cost, region)


def _by_shape(cost: StackCost) -> Mapping[tuple[str, str], Sequence[CostRange]]:
    found: dict[tuple[str, str], list[CostRange]] = {}
    for each in cost.tiers:
        if each.nodes is not None:
            found.setdefault((each.namespace, each.shape), []).append(each.cost)
    return found


def _notes(cost: StackCost, region: str) -> Iterator[str]:
    listed = price_region(cost.cloud)
    if listed != region:
        yield f"List prices are those of {listed}; those of {region} may differ."
    if any(pool.capacity.value == "spot" and not pool.declared for pool in cost.pools):
        yield f"Spot without a recorded price counts from {least_spot_share(cost.cloud):.0%} of the list price to the list price."
    yield NOT_COUNTED


def _most(cost: CostRange) -> str:
    """The upper bound alone: `up to 4.56`, with what is unknown."""
    if cost.high is None:
        return "unknown"
    return f"up to {cost.high:.2f}{'' if cost.is_bounded else ' + unknown'}"


def _month(cost: CostRange) -> str:
    return "" if cost.high is None else f", {cost.high * _HOURS_OF_A_MONTH:,.0f} a month"


def _unknown_clause(cost: StackCost) -> str:
    unknown = sorted(cost.with_full_pools.unknown)
    return f"; no price is known of {', '.join(unknown)}" if unknown else ""


def _nodes_of_tier(tier: TierCost) -> str:
    if tier.nodes is None:
        return "none"
    least, most = tier.nodes
    return str(least) if least == most else f"{least} to {most}"


def _saving(tier: TierCost, cost: StackCost) -> str:
    """What an hour of a gang on a tier of spot saves against the on-demand tier of its ladder, where both have prices."""
    capacity = {pool.name: pool.capacity for pool in cost.pools}
    same = [each for each in cost.tiers if (each.namespace, each.shape) == (tier.namespace, tier.shape)]
    full = next((each.cost for each in same if capacity[each.pool] is CapacityType.ON_DEMAND), CostRange())
    own = tier.cost
    if capacity[tier.pool] is not CapacityType.SPOT or own.unknown or full.unknown:
        return ""
    if own.low is None or own.high is None or full.low is None or full.high is None:
        return ""
    least = max(0.0, full.low - own.high)
    return str(CostRange(low=least, high=max(least, full.high - own.low)))


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
