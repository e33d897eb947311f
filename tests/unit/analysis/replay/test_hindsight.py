"""The bound with hindsight: what no replay undercuts, and how near it is to a schedule that exists."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.analysis.replay.hindsight import Stretch, least_cost
from holdfast.analysis.replay.ladders import stay
from holdfast.analysis.replay.market import Workload
from holdfast.analysis.replay.replay import hindsight, on_demand, replay
from holdfast.analysis.replay.trace import Trace
from tests.support.best_schedule import best_on_a_grid
from tests.support.markets import AT_ONCE, HOUR, JOB, MINUTE, SPOT_PRICE, ladder, market, trace

if TYPE_CHECKING:
    from datetime import timedelta

    from holdfast.analysis.replay.market import Market
    from holdfast.analysis.replay.replay import Replayed

SPOT_THEN_NONE = trace((20, 1), (100, 0))
ticks = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3)), min_size=1, max_size=30).map(
    lambda stretches: Trace(
        gap=30 * MINUTE, data=tuple(number for length, number in stretches for _ in range(length))
    )
)
jobs = st.builds(
    Workload,
    work=st.integers(1, 20).map(lambda hours: hours * HOUR / 4),
    nodes=st.integers(1, 3),
    restart=st.sampled_from([AT_ONCE, 12 * MINUTE, HOUR]),
    boot=st.sampled_from([AT_ONCE, 5 * MINUTE]),
    grace=st.sampled_from([AT_ONCE, MINUTE]),
    checkpoint_every=st.sampled_from([None, 20 * MINUTE]),
)


def bound(job: Workload, pools: Market, within: timedelta) -> float:
    found = hindsight(job, pools, AT_ONCE, within)
    assert found is not None, f"it can be done in {within}"
    return found


def test_hindsight_takes_spot_while_it_is_there_and_on_demand_for_the_rest() -> None:
    best = (20 * SPOT_PRICE + 28.4) / 48.2
    found = bound(JOB, market(SPOT_THEN_NONE), 52 * HOUR)
    assert found <= best, "this schedule exists"
    assert found == pytest.approx(best, abs=0.2 / 48.2), "and the bound is no more than a restart below it"


def test_hindsight_waits_where_there_is_time() -> None:
    pools = market(trace((20, 1), (10, 0), (80, 1)))
    assert bound(JOB, pools, 100 * HOUR) == pytest.approx(SPOT_PRICE * 48.4 / 48.2, abs=0.002), (
        "two runs on spot"
    )
    assert bound(JOB, pools, 50 * HOUR) > bound(JOB, pools, 100 * HOUR), "with less time it has to pay"


def test_what_cannot_be_done_in_time_has_no_bound() -> None:
    assert hindsight(JOB, market(SPOT_THEN_NONE), AT_ONCE, 48 * HOUR) is None, "48.2 h are needed"
    assert bound(JOB, market(SPOT_THEN_NONE), 48.2 * HOUR) == pytest.approx(1), "no time to change pools"


def check(job: Workload, pools: Market, found: Replayed) -> None:
    if found.is_finished:
        least = bound(job, pools, found.hours * HOUR + MINUTE / 1000)
        assert least <= found.cost + 1e-9, f"no schedule that is as fast costs less: {found}"


@settings(max_examples=60)
@given(
    job=jobs,
    traces=st.lists(ticks, min_size=1, max_size=3),
    prices=st.tuples(st.sampled_from([0.1, 0.32, 0.9, 1.5]), st.sampled_from([0.8, 1.0, 2.0])),
    max_failures=st.integers(1, 3),
)
def test_nothing_costs_less_than_hindsight_that_is_as_fast(
    job: Workload, traces: list[Trace], prices: tuple[float, float], max_failures: int
) -> None:
    pools = market(*traces, price=prices[0], last=prices[1])
    one_way = ladder(pools, max_failures=max_failures)
    policies = [
        one_way,
        replace(one_way, return_after=HOUR, hold_timeout=10 * MINUTE),
        stay("a-spot").policy,
    ]
    for policy in policies:
        check(job, pools, replay(job, pools, policy, AT_ONCE))
    within = on_demand(job).hours * HOUR + MINUTE / 1000
    if pools.length and within <= pools.length:
        assert bound(job, pools, within) <= 1 + 1e-9, "nor on-demand"
        assert bound(job, pools, pools.length) <= bound(job, pools, within) + 1e-9, "time never costs"


@settings(max_examples=60)
@given(
    rooms=st.lists(st.lists(st.booleans(), min_size=14, max_size=14), min_size=1, max_size=2),
    prices=st.lists(st.sampled_from([0.2, 0.5, 0.9]), min_size=2, max_size=2),
    work=st.integers(1, 8),
    restart=st.integers(0, 2),
)
def test_the_bound_is_no_more_and_little_less_than_the_best_schedule(
    rooms: list[list[bool]], prices: list[float], work: int, restart: int
) -> None:
    offers = [*zip(prices, rooms, strict=False), (1.0, [True] * 14)]
    stretches = [
        Stretch(
            hours=1,
            prices=tuple((number, price) for number, (price, room) in enumerate(offers) if room[hour]),
        )
        for hour in range(14)
    ]
    found = least_cost(stretches, work=work, restart=restart)
    best = best_on_a_grid(offers, work=work, restart=restart)
    assert found is not None, "on-demand is always there"
    assert best - 2 * restart - 1e-9 <= found <= best + 1e-9, "two restarts, where one was seen"
