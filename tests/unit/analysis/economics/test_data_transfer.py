"""What the data of a job costs on a tier in another region, alone and in replays."""

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.analysis.economics.data_transfer import RemoteTier
from pulumi_holdfast.analysis.economics.tier_costs import PoolRates
from pulumi_holdfast.analysis.replay.ladders import Numbers, ladders
from pulumi_holdfast.analysis.replay.market import Market, PoolMarket, Workload
from pulumi_holdfast.analysis.replay.replay import replay
from pulumi_holdfast.analysis.replay.trace import Trace
from pulumi_holdfast.cli.__main__ import main

amounts = st.floats(min_value=0.01, max_value=100)


def tier(
    *,
    size: float = 500,
    checkpoints: float = 1,
    price: float = 0.4,
    otherwise: float = 1.0,
    per_gib: float = 0.02,
) -> RemoteTier:
    return RemoteTier(
        rates=PoolRates(price=price),
        size_gib=size,
        checkpoints_per_hour=checkpoints,
        on_demand_price=40,
        price_per_gib=per_gib,
        otherwise=otherwise,
    )


def test_data_of_a_move_and_of_an_hour_are_in_on_demand_hours() -> None:
    assert tier().data_per_start == 0.25
    assert tier(checkpoints=2).cost_per_useful_hour == pytest.approx(0.9)
    assert math.isinf(tier(checkpoints=3).break_even_hours)


@given(size=amounts, price=st.floats(min_value=0.05, max_value=0.9), hours=amounts)
def test_tier_in_another_region_pays_from_its_break_even_hours(
    size: float, price: float, hours: float
) -> None:
    there = tier(size=size, price=price, checkpoints=0.1)
    if abs(hours - there.break_even_hours) > 1e-6:
        total = there.data_per_start + hours * there.cost_per_useful_hour
        assert (total < hours * there.otherwise) is (hours > there.break_even_hours)


@pytest.mark.parametrize("field", ["size_gib", "checkpoints_per_hour", "on_demand_price", "price_per_gib"])
def test_number_that_is_not_allowed_is_named(field: str) -> None:
    numbers = {"size_gib": 1.0, "checkpoints_per_hour": 1.0, "on_demand_price": 1.0, "price_per_gib": 1.0}
    with pytest.raises(ValueError, match=f"{field}: got -1"):
        RemoteTier(rates=PoolRates(price=0.5), **{**numbers, field: -1.0})


@pytest.mark.parametrize(
    ("options", "move", "pays"),
    [
        ("", "500 GiB at 0.02 USD", "from 0.7 h of training there"),
        ("--home gcp", "500 GiB at 0.12 USD", "never: "),
        ("--home azure", "500 GiB at 0.09 USD", "never: "),
        ("--home gcp --price-per-gib 0.02", "500 GiB at 0.02 USD", "from 0.7 h of training there"),
    ],
)
def test_command_says_from_when_the_tier_pays_by_the_prices_of_the_homes_cloud(
    options: str, move: str, pays: str, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = f"--size-gib 500 --checkpoints-per-hour 1 --on-demand-price 40 --spot-price 0.4 {options}"
    assert main(["economics", "elsewhere", *numbers.split()]) == 0
    said = capsys.readouterr().out
    assert move in said
    assert pays in said


def test_each_start_on_a_pool_in_another_region_costs_its_data_in_a_replay() -> None:
    hour = timedelta(hours=1)
    job = Workload(work=4 * hour)
    gone = Trace(gap=hour, data=(1, 1, 0, 1, 1, 1, 1, 1))
    costs: list[float] = []
    for data in (0.0, 0.5):
        west = PoolMarket(pool="west", price=0.4, trace=gone, data_per_start=data)
        market = Market(pools=(west, PoolMarket(pool="on-demand", price=1)))
        (ladder,) = ladders(market, Numbers(max_failures=(5,), procurement_timeout=(2 * hour,)))
        costs.append(replay(job, market, ladder.policy, timedelta(0)).cost)
    assert costs[1] - costs[0] == pytest.approx(2 * 0.5 / 4)
