"""One job from one start: what it costs, when it ends, what it loses, and how it waits."""

import math
from collections.abc import Sequence
from dataclasses import astuple, replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.analysis.replay.hindsight import Stretch, least_cost
from pulumi_holdfast.analysis.replay.ladders import stay
from pulumi_holdfast.analysis.replay.market import Block, Market, PoolMarket, Workload
from pulumi_holdfast.analysis.replay.replay import Replayed, hindsight, on_demand, replay, simulated
from pulumi_holdfast.analysis.replay.trace import SyntheticMarket, Trace, synthetic_trace
from pulumi_holdfast.controller.jobs.state import JobState
from pulumi_holdfast.controller.state_machine.ledger import with_ledger
from pulumi_holdfast.ladder.cost import gang_cost
from pulumi_holdfast.ladder.ladder import Policy, Tier
from pulumi_holdfast.ladder.prices import CostRange
from tests.support.markets import ALWAYS, AT_ONCE, HOUR, JOB, MINUTE, SPOT_PRICE, ladder, market, trace
from tests.support.soak import sized

ONLY_ON_DEMAND = Policy(tiers=(Tier(pool="on-demand"),))
NEVER = trace((240, 0))
# Ten hours, then an hour without.
BROKEN = trace((10, 1), (1, 0), (300, 1))


def same(one: Replayed, other: Replayed) -> bool:
    return astuple(one) == pytest.approx(astuple(other))


@pytest.mark.parametrize("nodes", [1, 16])
@pytest.mark.parametrize("boot", [0, 6])
def test_a_ladder_of_one_on_demand_tier_is_on_demand(nodes: int, boot: int) -> None:
    job = replace(JOB, nodes=nodes, boot=boot * MINUTE)
    assert same(replay(job, market(), ONLY_ON_DEMAND, AT_ONCE), on_demand(job))
    assert on_demand(job).cost == 1.0
    assert on_demand(job).hours == pytest.approx(48.2 + boot / 60)


def test_spot_that_is_always_there_costs_the_price_of_spot() -> None:
    pools = market(ALWAYS)
    for policy in (ladder(pools), stay("a-spot").policy):
        found = replay(JOB, pools, policy, AT_ONCE)
        assert found.cost == pytest.approx(SPOT_PRICE)
        assert found.hours == pytest.approx(48.2)
    assert hindsight(JOB, pools, AT_ONCE, 49 * HOUR) == pytest.approx(SPOT_PRICE)


def test_a_reserved_block_is_used_from_its_beginning_and_left_by_its_end() -> None:
    block = PoolMarket(pool="block", price=0.5, block=Block(begins=4 * HOUR, ends=28 * HOUR))
    pools = Market(pools=(block, PoolMarket(pool="on-demand", price=1)))
    job = replace(JOB, grace=2 * MINUTE)
    found = replay(job, pools, ladder(pools, return_after=HOUR), AT_ONCE)
    assert found.is_finished
    assert found.moves == 3
    assert found.evictions == 0
    assert found.cost == pytest.approx(1 - 24 * 0.5 / 48.2, abs=0.03)
    within = hindsight(job, pools, AT_ONCE, 60 * HOUR)
    assert within is not None
    assert within <= found.cost


def test_a_block_is_met_once_from_every_start_in_the_traces() -> None:
    block = Block(begins=10 * HOUR, ends=20 * HOUR)
    assert block.after(4 * HOUR, 100 * HOUR) == (6 * HOUR, 16 * HOUR)
    assert block.after(15 * HOUR, 100 * HOUR) == (-5 * HOUR, 5 * HOUR)
    assert block.after(20 * HOUR, 100 * HOUR) == (90 * HOUR, 100 * HOUR)


def test_a_job_buys_nothing_above_max_price_and_keeps_the_machines_that_it_has() -> None:
    # Ten hours at the usual price, ten above the limit, then the usual price again.
    prices = (*[SPOT_PRICE] * 60, *[0.6] * 60, *[SPOT_PRICE] * 1320)
    pools, job = market(replace(ALWAYS, prices=prices)), replace(JOB, boot=MINUTE)
    policy = limited(ladder(pools, return_after=HOUR))
    kept = replay(job, pools, policy, AT_ONCE)
    assert (kept.moves, kept.cost) == (0, pytest.approx((38.2 * SPOT_PRICE + 10 * 0.6) / 48.2, abs=1e-3))
    left = replay(job, pools, policy, 10 * HOUR)
    assert left.moves == 2
    assert left.cost == pytest.approx((10 + 38.4 * SPOT_PRICE) / 48.2, abs=0.03)
    assert replay(job, pools, ladder(pools), 10 * HOUR).moves == 0
    with pytest.raises(ValueError, match="boot: got 0; allowed with maxPrice: more than 0"):
        replay(JOB, pools, policy, AT_ONCE)


def limited(policy: Policy, max_price: float = 0.45) -> Policy:
    """The policy with a limit of price on every tier but the last."""
    *upper, last = policy.tiers
    return replace(policy, tiers=(*(replace(tier, max_price=max_price) for tier in upper), last))


def test_a_pool_without_capacity_costs_its_procurement_timeout_in_time_and_nothing_in_money() -> None:
    pools = market(NEVER)
    found = replay(JOB, pools, ladder(pools), AT_ONCE)
    assert found.cost == pytest.approx(1)
    assert found.waited_hours == pytest.approx(0.25)
    assert (found.moves, found.evictions, found.hours) == (1, 0, pytest.approx(48.45))


def test_an_eviction_costs_a_restart_the_wait_and_the_work_since_the_checkpoint() -> None:
    found = replay(JOB, market(BROKEN), stay("a-spot").policy, AT_ONCE)
    assert found.evictions == 1
    assert found.lost_hours == pytest.approx(0.4)
    assert found.waited_hours == pytest.approx(1)
    assert found.hours == pytest.approx(48 + 0.4 + 1)
    assert found.cost == pytest.approx(SPOT_PRICE * 48.4 / 48.2)
    job = replace(JOB, checkpoint_every=30 * MINUTE)
    found = replay(job, market(BROKEN), stay("a-spot").policy, AT_ONCE)
    assert found.lost_hours == pytest.approx(0.4 + 0.3)


def test_a_gang_that_has_some_of_its_machines_pays_for_those_and_makes_no_progress() -> None:
    job, pools = replace(JOB, nodes=4), market(trace((240, 3)))
    found = replay(job, pools, ladder(pools), AT_ONCE)
    assert found.waited_hours == pytest.approx(0.25)
    assert found.cost == pytest.approx(1 + SPOT_PRICE * 3 / 4 * 0.25 / 48.2)


def test_a_failback_lowers_the_cost_on_a_seeded_trace() -> None:
    pools = market(synthetic_trace(SyntheticMarket(), 11))
    one_way = replay(JOB, pools, ladder(pools, max_failures=1), AT_ONCE)
    back = replay(JOB, pools, ladder(pools, max_failures=1, return_after=HOUR), AT_ONCE)
    assert back.cost < one_way.cost
    assert back.moves > one_way.moves, "since it went back up"


def test_a_start_is_where_in_the_traces_the_job_begins() -> None:
    pools = market(BROKEN)
    later = replay(JOB, pools, stay("a-spot").policy, 10 * HOUR)
    assert later.waited_hours == pytest.approx(1)
    assert later.evictions == 0


def test_traces_go_on_from_their_beginning_and_a_replay_ends_when_all_of_them_is_seen() -> None:
    pools = market(trace((100, 1), (20, 0)))
    over_the_end = replay(JOB, pools, stay("a-spot").policy, 90 * HOUR)
    assert over_the_end.waited_hours == pytest.approx(20)
    stuck = replay(JOB, market(NEVER), stay("a-spot").policy, AT_ONCE)
    assert (stuck.is_finished, stuck.hours, stuck.cost) == (False, pytest.approx(240), 0)


def test_pools_of_different_length_and_gap_are_replayed_for_what_they_have_in_common() -> None:
    pools = market(trace((100, 0), (100, 1)), trace((120, 1), gap=5 * MINUTE))
    assert pools.length == 120 * HOUR
    found = replay(JOB, pools, stay("a-spot").policy, AT_ONCE)
    assert (found.is_finished, found.waited_hours) == (False, pytest.approx(100))


def test_trouble_after_the_policys_own_deadline_leads_straight_to_on_demand() -> None:
    pools = market(BROKEN, NEVER)
    policy = ladder(pools, max_failures=1)
    assert replay(JOB, pools, policy, AT_ONCE).moves == 2
    late = replace(policy, deadline=6 * HOUR)
    assert replay(JOB, pools, late, AT_ONCE).moves == 1


def test_the_same_replay_is_the_same() -> None:
    pools = market(*(synthetic_trace(SyntheticMarket(instances=4), seed) for seed in (1, 2)))
    job, policy = replace(JOB, nodes=4, boot=3 * MINUTE), ladder(pools, return_after=4 * HOUR)
    one, other = (replay(job, pools, policy, 30 * HOUR) for _ in range(2))
    assert one == other
    assert one.moves > 0


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


IDLE = -1


def best_on_a_grid(offers: Sequence[tuple[float, Sequence[bool]]], *, work: int, restart: int) -> float:
    """Return the least cost of so many hours of work, each pool by its price and in which hours it has room."""
    # Pool, hours of restart that are left, hours of work done → cost.
    reached: dict[tuple[int, int, int], float] = {(IDLE, 0, 0): 0.0}
    for hour in range(len(offers[0][1])):
        then: dict[tuple[int, int, int], float] = {}
        for (pool, left, done), cost in reached.items():
            steps = [((IDLE, 0, done), cost)]
            for other, (price, room) in enumerate(offers):
                if room[hour] and done < work:
                    wait = left if other == pool else restart
                    steps.append(((other, max(0, wait - 1), done + (wait == 0)), cost + price))
            for state, total in steps:
                then[state] = min(total, then.get(state, math.inf))
        reached = then
    return min((cost for (_, _, done), cost in reached.items() if done >= work), default=math.inf)


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


def test_hindsight_takes_spot_while_it_is_there_and_waits_where_there_is_time() -> None:
    best = (20 * SPOT_PRICE + 28.4) / 48.2
    found = bound(JOB, market(SPOT_THEN_NONE), 52 * HOUR)
    assert found <= best
    assert found == pytest.approx(best, abs=0.2 / 48.2)
    pools = market(trace((20, 1), (10, 0), (80, 1)))
    assert bound(JOB, pools, 100 * HOUR) == pytest.approx(SPOT_PRICE * 48.4 / 48.2, abs=0.002)
    assert bound(JOB, pools, 50 * HOUR) > bound(JOB, pools, 100 * HOUR)
    assert hindsight(JOB, market(SPOT_THEN_NONE), AT_ONCE, 48 * HOUR) is None
    assert bound(JOB, market(SPOT_THEN_NONE), 48.2 * HOUR) == pytest.approx(1)


def check(job: Workload, pools: Market, found: Replayed) -> None:
    if found.is_finished:
        least = bound(job, pools, found.hours * HOUR + MINUTE / 1000)
        assert least <= found.cost + 1e-9


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
    policies = [one_way, replace(one_way, return_after=HOUR, hold_timeout=10 * MINUTE), stay("a-spot").policy]
    for policy in policies:
        check(job, pools, replay(job, pools, policy, AT_ONCE))
    within = on_demand(job).hours * HOUR + MINUTE / 1000
    if pools.length and within <= pools.length:
        assert bound(job, pools, within) <= 1 + 1e-9
        assert bound(job, pools, pools.length) <= bound(job, pools, within) + 1e-9


def with_prices(trace: Trace) -> st.SearchStrategy[Trace]:
    size = len(trace.data)
    prices = st.lists(st.sampled_from([0.1, 0.3, 0.5, 1.2]), min_size=size, max_size=size)
    return prices.map(lambda drawn: replace(trace, prices=tuple(drawn)))


@settings(max_examples=60)
@given(job=jobs, traces=st.lists(ticks.flatmap(with_prices), min_size=1, max_size=3), hours=st.integers(0, 9))
def test_the_ledger_at_drawn_prices_is_the_account_of_the_replay(
    job: Workload, traces: list[Trace], hours: int
) -> None:
    job, pools = replace(job, boot=5 * MINUTE), market(*traces)
    start = min(hours * HOUR, pools.length or AT_ONCE)
    policy = limited(ladder(pools, return_after=HOUR))
    run, found = simulated(job, pools, policy, start), replay(job, pools, policy, start)
    (ran,) = run.jobs
    assert isinstance(ran.state, JobState)
    ledger = with_ledger(ran.state, run.observed(ran), policy).ledger
    cost = ledger.cost if ledger is not None else None
    assert (cost or 0.0) / (job.nodes * job.undisturbed / HOUR) == pytest.approx(found.cost)
    if found.is_finished:
        least = hindsight(job, pools, start, found.hours * HOUR + MINUTE / 1000)
        assert least is not None
        assert least <= found.cost + 1e-9


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
    assert found is not None
    assert best - 2 * restart - 1e-9 <= found <= best + 1e-9


WEATHER = SyntheticMarket(
    instances=8, there=3 * HOUR, gone=1 * HOUR, gap=10 * MINUTE, length=timedelta(days=10)
)


@settings(max_examples=sized(25, soak=1000))
@given(
    seeds=st.lists(st.integers(0, 10_000), min_size=1, max_size=3),
    shares=st.lists(st.floats(0, 1), min_size=4, max_size=4),
    lists=st.lists(st.floats(0.2, 100), min_size=4, max_size=4),
    nodes=st.integers(1, 8),
    returns=st.sampled_from([None, HOUR, 4 * HOUR]),
    boot=st.sampled_from([AT_ONCE, 6 * MINUTE]),
    start=st.integers(0, 200),
)
def test_replay_pays_within_the_range_of_the_gang(
    seeds: list[int],
    shares: list[float],
    lists: list[float],
    nodes: int,
    returns: timedelta | None,
    boot: timedelta,
    start: int,
) -> None:
    # Spot costs anything from a tenth of the list price to the list price; the last tier costs the list price.
    spot = [CostRange(low=price * 0.1, high=price) for price in lists[: len(seeds)]]
    last = CostRange(low=lists[3], high=lists[3])
    drawn = [
        low + share * (high - low) for (low, high), share in zip(map(_bounds, spot), shares, strict=False)
    ]
    market = Market(
        pools=(
            *(
                PoolMarket(pool=f"spot-{place}", price=price, trace=synthetic_trace(WEATHER, seed))
                for place, (seed, price) in enumerate(zip(seeds, drawn, strict=True))
            ),
            PoolMarket(pool="on-demand", price=lists[3]),
        )
    )
    job = Workload(work=30 * HOUR, nodes=nodes, restart=12 * MINUTE, boot=boot, grace=2 * MINUTE)
    found = replay(job, market, ladder(market, return_after=returns), start * HOUR)
    paid = found.cost * nodes * (job.undisturbed / HOUR)
    costs = [*spot, last]
    gang = gang_cost([each.times(nodes) for each in costs])
    assert gang.high is not None
    assert paid <= gang.high * found.hours * (1 + 1e-9)
    if found.is_finished:
        cheapest = min(_bounds(each)[0] for each in costs)
        assert paid >= cheapest * nodes * (job.work / HOUR) * (1 - 1e-9)


def _bounds(cost: CostRange) -> tuple[float, float]:
    assert cost.low is not None
    assert cost.high is not None
    return cost.low, cost.high
