"""The cost of a stack in USD an hour: without jobs, with full pools, and of each shape on each tier. Pure.

`holdfast cost`, the preview, the budget and the comment on a pull request use this one estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi_holdfast.ladder.prices import CostRange, any_of, exactly, machine_price, total

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_holdfast.ladder.labels import CapacityType
    from pulumi_holdfast.ladder.ladder import Ladder
    from pulumi_holdfast.ladder.machines import Machine
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary
    from pulumi_holdfast.ladder.reachability.shape import Shape


@dataclass(frozen=True, kw_only=True)
class Charge:
    """A charge that does not depend on jobs, such as `2 NAT gateways`."""

    title: str
    cost: CostRange


@dataclass(frozen=True, kw_only=True)
class PricedPool:
    """A pool and its machine types with their prices; `declared` are the prices that tiers declare for its nodes."""

    name: str
    capacity: CapacityType
    max_nodes: int
    machines: Mapping[str, CostRange]
    declared: tuple[float, ...] = ()

    @property
    def node(self) -> CostRange:
        """The price of one node: the declared ones, otherwise that of any of its machine types."""
        return any_of(map(exactly, self.declared)) if self.declared else any_of(self.machines.values())

    @property
    def full(self) -> CostRange:
        """The cost from no node to all nodes."""
        return self.node.times(0, self.max_nodes)

    def price_of(self, machine: str) -> CostRange:
        """The price of a node of one of its machine types."""
        return self.node if self.declared else self.machines[machine]


@dataclass(frozen=True, kw_only=True)
class TierCost:
    """The cost of a shape's gang on a tier; `nodes` is the fewest and the most nodes, None if no machine type fits a pod."""

    namespace: str
    shape: str
    tier: int
    pool: str
    nodes: tuple[int, int] | None
    cost: CostRange


@dataclass(frozen=True, kw_only=True)
class StackCost:
    """The cost of a stack."""

    cloud: str
    idle: tuple[Charge, ...]
    pools: tuple[PricedPool, ...]
    tiers: tuple[TierCost, ...]

    @property
    def without_jobs(self) -> CostRange:
        """What it costs while all pools are empty."""
        return total(each.cost for each in self.idle)

    @property
    def with_full_pools(self) -> CostRange:
        """From its least cost without a job to its cost with all nodes of all pools."""
        return self.without_jobs + total(pool.full for pool in self.pools)


def priced_pool(
    name: str,
    summary: PoolSummary,
    machines: Sequence[Machine],
    cloud: str,
    *,
    spot: Mapping[str, CostRange],
    ladders: Sequence[Ladder] = (),
) -> PricedPool:
    """Price a pool of these machines; `spot` has recorded spot prices, `ladders` are those of the stack."""
    prices = {
        tier.price for ladder in ladders for tier in ladder.tiers if (tier.cluster, tier.pool) == ("", name)
    }
    return PricedPool(
        name=name,
        capacity=summary.capacity,
        max_nodes=summary.max_nodes,
        machines={
            machine.name: machine_price(machine, summary.capacity, cloud, spot) for machine in machines
        },
        declared=tuple(sorted(price for price in prices if price is not None)),
    )


def tier_costs(
    namespace: str,
    ladder: Ladder,
    shapes: Sequence[Shape],
    pools: Mapping[str, PricedPool],
    summaries: Mapping[str, PoolSummary],
) -> tuple[TierCost, ...]:
    """The cost of each shape on each tier of a namespace's ladder."""
    return tuple(
        _tier_cost(namespace, shape, number, pools[tier.pool], summaries[tier.pool])
        for shape in shapes
        for number, tier in enumerate(ladder.tiers, start=1)
        if tier.pool in pools and not tier.cluster
    )


def _tier_cost(namespace: str, shape: Shape, number: int, pool: PricedPool, summary: PoolSummary) -> TierCost:
    per_node = {each.name: each.pods_of(shape.requests) for each in summary.machine_capacities}
    if shape.one_per_node:
        per_node = {name: min(1, pods) for name, pods in per_node.items()}
    nodes = {name: -(-shape.pods // pods) for name, pods in per_node.items() if pods}
    return TierCost(
        namespace=namespace,
        shape=shape.name,
        tier=number,
        pool=pool.name,
        nodes=(min(nodes.values()), max(nodes.values())) if nodes else None,
        cost=any_of(pool.price_of(name).times(count) for name, count in nodes.items()),
    )


def gang_cost(tiers: Sequence[CostRange]) -> CostRange:
    """The hourly cost of a job at any time on a ladder whose tiers cost this; first tier first.

    From nothing, while it waits, to the two most expensive tiers together: nodes of the tier that it leaves still end when those of the
    next one start, and a job that returns runs until its better tier is reserved.
    """
    highs = sorted((tier.high for tier in tiers if tier.high is not None), reverse=True)
    return CostRange(low=0.0, high=sum(highs[:2]) if highs else None, unknown=total(tiers).unknown)


def is_within(cost: CostRange, budget: float) -> bool:
    """Whether a cost is certainly within a budget: not if a part of it has no known price."""
    return cost.is_bounded and cost.high is not None and cost.high <= budget
