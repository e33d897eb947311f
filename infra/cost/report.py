"""The texts of a cost estimate: for the terminal, and for a preview's log. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from holdfast.scheduling.cost import StackCost, TierCost, gang_cost
from holdfast.scheduling.prices import CostRange, least_spot_share, price_region

#: What no estimate has, because it depends on use.
NOT_COUNTED: Final = "Not counted: traffic, storage, logs, keys, taxes and discounts of your contract."

_HOURS_OF_A_MONTH: Final = 730


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
                ("namespace", "shape", "tier", "nodes", "the gang"),
                *(
                    (
                        each.namespace,
                        each.shape,
                        f"{each.tier} {each.pool}",
                        _nodes(each),
                        str(each.cost) if each.nodes else "does not fit",
                    )
                    for each in cost.tiers
                ),
                *(
                    (namespace, shape, "any time", "", _most(gang_cost(tiers)))
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


def _nodes(tier: TierCost) -> str:
    if tier.nodes is None:
        return "none"
    least, most = tier.nodes
    return str(least) if least == most else f"{least} to {most}"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
