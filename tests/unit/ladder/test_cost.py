"""Costs are ranges: they add up, they grow with nodes, and a missing price is neither nothing nor the highest."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.cost import PricedPool, is_within
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.prices import (
    FREE,
    CostRange,
    any_of,
    charge,
    exactly,
    machine_price,
    price_facts,
    price_region,
    total,
    unpriced,
)
from tests.support.builders.configurations import machine

PRICED = machine("m7i.xlarge")
UNPRICED = replace(PRICED, name="p5e.48xlarge", has_list_price=False)

prices = st.floats(0.001, 1000)
ranges = st.tuples(prices, prices).map(
    lambda pair: CostRange(low=min(pair), high=max(pair))
) | st.sampled_from(["a", "b"]).map(unpriced)


def bounds(cost: CostRange) -> tuple[float, float]:
    assert cost.low is not None
    assert cost.high is not None
    return cost.low, cost.high


@given(st.lists(ranges, max_size=5), st.integers(0, 100))
def test_the_sum_contains_the_sum_of_any_prices_within_and_names_all_that_is_unknown(
    costs: list[CostRange], count: int
) -> None:
    found = total(costs)
    known = [each for each in costs if each.is_bounded]
    assert found.unknown == {name for each in costs for name in each.unknown}
    if known:
        low, high = bounds(found)
        assert low == pytest.approx(sum(bounds(each)[0] for each in known))
        assert high == pytest.approx(sum(bounds(each)[1] for each in known))
        assert bounds(found.times(0, count))[0] == 0
    else:
        assert str(found) == ("unknown" if costs else "0.00")


@given(st.lists(ranges, min_size=1, max_size=5))
def test_one_of_several_costs_no_less_than_the_cheapest_and_no_more_than_the_most_expensive(
    costs: list[CostRange],
) -> None:
    found = any_of(costs)
    for each in costs:
        assert each.unknown <= found.unknown
        if each.is_bounded:
            (low, high), (least, most) = bounds(each), bounds(found)
            assert least <= low <= high <= most


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp", "local"])
def test_a_machine_has_its_list_price_on_demand_and_at_most_that_on_spot(cloud: str) -> None:
    for each in machine_catalogue(cloud).values():
        on_demand = machine_price(each, CapacityType.ON_DEMAND, cloud, {})
        spot = machine_price(each, CapacityType.SPOT, cloud, {})
        if each.list_price is None:
            assert on_demand == spot == unpriced(each.name), f"{each.name} has no list price"
        else:
            assert on_demand == exactly(each.list_price), f"{each.name} costs its list price"
            low, high = bounds(spot)
            assert 0 < low < high == each.list_price, f"{each.name} costs less on spot, and something"


def test_types_without_a_list_price_are_those_of_the_table() -> None:
    missing = [each.name for each in machine_catalogue("aws").values() if each.list_price is None]
    assert len(missing) == 48
    assert "p5e.48xlarge" in missing


def test_a_recorded_spot_price_replaces_the_published_share() -> None:
    recorded = {PRICED.name: CostRange(low=0.05, high=0.07), UNPRICED.name: exactly(9.0)}
    assert machine_price(PRICED, CapacityType.SPOT, "aws", recorded) == recorded[PRICED.name]
    assert machine_price(UNPRICED, CapacityType.SPOT, "aws", recorded) == exactly(9.0)
    on_demand = machine_price(UNPRICED, CapacityType.ON_DEMAND, "aws", recorded)
    assert on_demand == unpriced(UNPRICED.name)


def test_a_reservation_has_no_list_price() -> None:
    found = machine_price(PRICED, CapacityType.RESERVED, "aws", {})
    assert found == unpriced(PRICED.name)


def test_a_pool_with_an_unpriced_type_has_the_bounds_of_the_others_and_says_so() -> None:
    pool = PricedPool(
        name="h200",
        capacity=CapacityType.ON_DEMAND,
        max_nodes=4,
        machines={"p5e.48xlarge": unpriced("p5e.48xlarge"), "p5en.48xlarge": exactly(60.0)},
    )
    assert str(pool.full) == "0.00 to 240.00 + unknown"
    assert not is_within(pool.full, 1_000_000)
    declared = replace(pool, declared=(40.0, 42.0))
    assert str(declared.full) == "0.00 to 168.00"
    assert is_within(declared.full, 168)
    assert not is_within(declared.full, 167.9)


def test_an_unknown_charge_is_unknown() -> None:
    assert charge("no-such-thing") == unpriced("no-such-thing")
    assert total([]) == FREE


def test_each_published_price_has_its_source_and_date() -> None:
    facts = price_facts()
    for name, each in {**facts["charges"], **facts["leastSpotShare"], **facts["transfers"]}.items():
        assert each["source"], f"{name} says where it was read"
        year, month, day = each["date"].split("-")
        assert (len(year), len(month), len(day)) == (4, 2, 2), f"{name} says of when it is"
    for name, each in {**facts["charges"], **facts["transfers"]}.items():
        assert -1 < each["low"] <= each["high"] < 1, (
            f"{name} is a price of an hour or a GiB, or a credit, not of a month"
        )
    assert price_region("aws") == "us-east-1"
