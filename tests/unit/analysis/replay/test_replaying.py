"""One job from one start: what it costs, when it ends, what it loses, and how it waits."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import TYPE_CHECKING

import pytest

from holdfast.analysis.replay.ladders import stay
from holdfast.analysis.replay.market import Market, PoolMarket, Workload
from holdfast.analysis.replay.replay import Replayed, hindsight, on_demand, replay
from holdfast.analysis.replay.trace import Weather, synthetic_trace
from holdfast.fallback.policy.policy import Policy, PolicyTier
from tests.support.markets import ALWAYS, AT_ONCE, HOUR, JOB, MINUTE, SPOT_PRICE, ladder, market, trace

if TYPE_CHECKING:
    from datetime import timedelta

ONLY_ON_DEMAND = Policy(tiers=(PolicyTier(pool="on-demand"),))
NEVER = trace((240, 0))
# Ten hours, then an hour without.
BROKEN = trace((10, 1), (1, 0), (300, 1))


def same(one: Replayed, other: Replayed) -> bool:
    return astuple(one) == pytest.approx(astuple(other))


@pytest.mark.parametrize("nodes", [1, 16])
@pytest.mark.parametrize("boot", [0, 6])
def test_a_ladder_of_one_on_demand_tier_is_on_demand(nodes: int, boot: int) -> None:
    job = replace(JOB, nodes=nodes, boot=boot * MINUTE)
    assert same(replay(job, market(), ONLY_ON_DEMAND, AT_ONCE), on_demand(job)), "to the last number"
    assert on_demand(job).cost == 1.0, "which is the measure of all costs"
    assert on_demand(job).hours == pytest.approx(48.2 + boot / 60), "work, restart and boot"


def test_spot_that_is_always_there_costs_the_price_of_spot() -> None:
    pools = market(ALWAYS)
    for policy in (ladder(pools), stay("a-spot").policy):
        found = replay(JOB, pools, policy, AT_ONCE)
        assert found.cost == pytest.approx(SPOT_PRICE), "and nothing else"
        assert found.hours == pytest.approx(48.2), "it is as fast as on-demand"
    assert hindsight(JOB, pools, AT_ONCE, 49 * HOUR) == pytest.approx(SPOT_PRICE), "nobody can do better"


def test_a_pool_without_capacity_costs_its_procurement_timeout_in_time_and_nothing_in_money() -> None:
    pools = market(NEVER)
    found = replay(JOB, pools, ladder(pools), AT_ONCE)
    assert found.cost == pytest.approx(1), "no machine was paid for meanwhile"
    assert found.waited_hours == pytest.approx(0.25), "15 minutes"
    assert (found.moves, found.evictions, found.hours) == (1, 0, pytest.approx(48.45)), "then on-demand"


def test_an_eviction_costs_a_restart_and_the_wait() -> None:
    found = replay(JOB, market(BROKEN), stay("a-spot").policy, AT_ONCE)
    assert found.evictions == 1, "it was one"
    assert found.lost_hours == pytest.approx(0.4), "the first start and the second"
    assert found.waited_hours == pytest.approx(1), "an hour without a machine"
    assert found.hours == pytest.approx(48 + 0.4 + 1), "one after the other"
    assert found.cost == pytest.approx(SPOT_PRICE * 48.4 / 48.2), "the wait is not paid for"


def test_what_was_done_since_the_last_checkpoint_is_done_again() -> None:
    job = replace(JOB, checkpoint_every=30 * MINUTE)
    found = replay(job, market(BROKEN), stay("a-spot").policy, AT_ONCE)
    assert found.lost_hours == pytest.approx(0.4 + 0.3), "9.8 hours of work, the last checkpoint at 9.5"


def test_a_gang_that_has_some_of_its_machines_pays_for_those_and_makes_no_progress() -> None:
    job, pools = replace(JOB, nodes=4), market(trace((240, 3)))
    found = replay(job, pools, ladder(pools), AT_ONCE)
    assert found.waited_hours == pytest.approx(0.25), "three of four are none"
    assert found.cost == pytest.approx(1 + SPOT_PRICE * 3 / 4 * 0.25 / 48.2), "but have their price"


def test_the_way_back_up_lowers_the_cost_on_a_seeded_trace() -> None:
    pools = market(synthetic_trace(Weather(), 11))
    one_way = replay(JOB, pools, ladder(pools, max_failures=1), AT_ONCE)
    back = replay(JOB, pools, ladder(pools, max_failures=1, return_after=HOUR), AT_ONCE)
    assert back.cost < one_way.cost, f"{back.cost} instead of {one_way.cost}"
    assert back.moves > one_way.moves, "since it went back up"


def test_a_start_is_where_in_the_traces_the_job_begins() -> None:
    pools = market(BROKEN)
    later = replay(JOB, pools, stay("a-spot").policy, 10 * HOUR)
    assert later.waited_hours == pytest.approx(1), "the hour without comes first"
    assert later.evictions == 0, "and evicts nobody"


def test_traces_go_on_from_their_beginning_and_a_replay_ends_when_all_of_them_is_seen() -> None:
    pools = market(trace((100, 1), (20, 0)))
    over_the_end = replay(JOB, pools, stay("a-spot").policy, 90 * HOUR)
    assert over_the_end.waited_hours == pytest.approx(20), "the end, and the beginning again"
    stuck = replay(JOB, market(NEVER), stay("a-spot").policy, AT_ONCE)
    assert (stuck.is_finished, stuck.hours, stuck.cost) == (False, pytest.approx(240), 0), "once through"


def test_pools_of_different_length_and_gap_are_replayed_for_what_they_have_in_common() -> None:
    pools = market(trace((100, 0), (100, 1)), trace((120, 1), gap=5 * MINUTE))
    assert pools.length == 120 * HOUR, "the shorter one's"
    found = replay(JOB, pools, stay("a-spot").policy, AT_ONCE)
    assert (found.is_finished, found.waited_hours) == (False, pytest.approx(100)), "there are 20 hours in it"


def test_trouble_after_the_policys_own_deadline_leads_straight_to_on_demand() -> None:
    pools = market(BROKEN, NEVER)
    policy = ladder(pools, max_failures=1)
    assert replay(JOB, pools, policy, AT_ONCE).moves == 2, "by way of the second pool, which has nothing"
    late = replace(policy, deadline=6 * HOUR)
    assert replay(JOB, pools, late, AT_ONCE).moves == 1, "past it there is no time to try"


def test_the_same_replay_is_the_same() -> None:
    pools = market(*(synthetic_trace(Weather(instances=4), seed) for seed in (1, 2)))
    job, policy = replace(JOB, nodes=4, boot=3 * MINUTE), ladder(pools, return_after=4 * HOUR)
    one, other = (replay(job, pools, policy, 30 * HOUR) for _ in range(2))
    assert one == other, "nothing is left to chance"
    assert one.moves > 0, "though much has happened"


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"work": AT_ONCE}, "work"),
        ({"nodes": 0}, "nodes"),
        ({"restart": -HOUR}, "restart"),
        ({"boot": -HOUR}, "boot"),
        ({"grace": -HOUR}, "grace"),
        ({"checkpoint_every": AT_ONCE}, "checkpoint_every"),
    ],
)
def test_what_is_no_job_is_refused(wrong: dict[str, timedelta], named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}: got"):
        replace(Workload(work=HOUR), **wrong)


@pytest.mark.parametrize("price", [0.0, -1.0, float("nan"), float("inf")])
def test_a_price_that_is_none_is_refused(price: float) -> None:
    with pytest.raises(ValueError, match="price of a: got"):
        PoolMarket(pool="a", price=price)


def test_no_pool_and_a_pool_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="none"):
        Market(pools=())
    with pytest.raises(ValueError, match="a a second time"):
        Market(pools=(PoolMarket(pool="a", price=1), PoolMarket(pool="a", price=1)))
