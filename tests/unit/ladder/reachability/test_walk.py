from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import ZONE
from pulumi_holdfast.ladder.ladder import UNLIMITED
from pulumi_holdfast.ladder.reachability.facts import Limits, PoolFacts, TierFacts
from pulumi_holdfast.ladder.reachability.shape import Placement, Resources
from pulumi_holdfast.ladder.reachability.walk import Outcome, walk, walk_together
from pulumi_holdfast.ladder.taints import SPOT, Taint
from tests.support.builders.reachability import P4D, ladder, on_demand, shape, spot, tier
from tests.support.fakes.job_market import MarketTier, end_of
from tests.support.soak import sized

TOO_FEW = Limits(nodes=1)
NO_NODES = Limits(nodes=0)


def test_job_arrives_on_demand_from_spot():
    found = walk(shape(), ladder())
    assert found.outcome is Outcome.ARRIVES
    assert found.never_used == ()


def test_tier_without_room_is_passed_by_its_timeout_and_reported_as_never_used():
    found = walk(shape(), [tier(1, spot(limits=TOO_FEW)), tier(2, on_demand(), has_timeout=False)])
    assert found.outcome is Outcome.ARRIVES
    assert [step.tier.number for step in found.never_used] == [1]


@pytest.mark.parametrize(
    ("tiers", "check"),
    [
        ([tier(1, spot()), tier(2, on_demand(limits=TOO_FEW))], "gang"),
        ([tier(1, spot()), tier(2, spot("h100-spot"))], "capacity"),
        ([tier(1, spot()), tier(2, name="gone")], "pool"),
    ],
    ids=["too small for the gang", "spot", "does not exist"],
)
def test_job_falls_off_when_the_last_pool_does_not_take_it(tiers: Sequence[TierFacts], check: str):
    found = walk(shape(), tiers)
    assert found.outcome is Outcome.FALLS_OFF
    assert [failed.check for failed in found.steps[-1].failed] == [check]
    assert found.steps[-1].title == f"tier 2 → pool {tiers[-1].pool}"


STAYS = tier(1, spot(), max_failures=-1, has_timeout=False)
SECOND_STAYS = tier(2, spot("b"), max_failures=-1, has_timeout=False)
MAY_BE_ON_DEMAND = spot(capacity_types=frozenset({"on-demand", "spot"}), is_decided=False)


@pytest.mark.parametrize(
    ("tiers", "end", "reason"),
    [
        ([tier(1, spot(limits=TOO_FEW), has_timeout=False), tier(2, on_demand())], Outcome.STUCK, "no pod runs there, so none fails five times"),
        ([STAYS], Outcome.STAYS, "unlimited failures on the last tier"),
        ([STAYS, tier(2, on_demand())], Outcome.STAYS, "or above tiers that it never reaches"),
        ([tier(1, spot(), max_failures=-1), tier(2, on_demand())], Outcome.ARRIVES, "by the timeout"),
        ([tier(1, spot(limits=NO_NODES), max_failures=-1, has_timeout=False)], Outcome.FALLS_OFF, "the job would never get a node"),
        ([tier(1, spot(taints=UNKNOWN), has_timeout=False), SECOND_STAYS], Outcome.UNDETERMINED, "the job may be stuck above"),
        ([tier(1, spot(taints=UNKNOWN)), SECOND_STAYS], Outcome.STAYS, "the timeout leads past it"),
        ([tier(1, MAY_BE_ON_DEMAND), SECOND_STAYS], Outcome.UNDETERMINED, "the job may arrive above"),
        ([tier(1, spot()), tier(2, on_demand(taints=UNKNOWN))], Outcome.UNDETERMINED, "taints may turn out either way"),
        ([tier(1, spot()), tier(2, on_demand(machines=UNKNOWN))], Outcome.UNDETERMINED, "machines may turn out either way"),
        ([tier(1, spot()), tier(2, on_demand(limits=Limits(nodes=UNKNOWN)))], Outcome.UNDETERMINED, "a limit may turn out either way"),
        ([tier(1, spot()), tier(2, on_demand(is_decided=False))], Outcome.UNDETERMINED, "the capacity may turn out either way"),
        ([tier(1, spot()), tier(2, name="shared", may_be_external=True)], Outcome.UNDETERMINED, "a pool of another stack cannot be seen"),
        ([tier(1, spot(taints=UNKNOWN), has_timeout=False), tier(2, on_demand(limits=TOO_FEW))], Outcome.FALLS_OFF, "stuck above or fallen off below, it does not arrive"),
        ([tier(1, MAY_BE_ON_DEMAND), tier(2, spot("other"))], Outcome.UNDETERMINED, "the job may arrive above"),
        ([tier(1, spot(taints=UNKNOWN), has_timeout=False), tier(2, on_demand())], Outcome.UNDETERMINED, "the job may be stuck above"),
        ([tier(1, spot()), tier(2, on_demand(limits=TOO_FEW), on_demand(title="a100-b"))], Outcome.ARRIVES, "pods run on any node pool of the name"),
    ],
)  # fmt: skip
def test_walk_has_one_outcome_for_a_ladder(tiers: Sequence[TierFacts], end: Outcome, reason: str):
    assert walk(shape(), tiers).outcome is end, reason


def test_ladder_without_tiers_raises():
    with pytest.raises(ValueError, match="without tiers"):
        walk(shape(), [])


def test_tier_takes_a_job_of_several_shapes_only_if_it_takes_each():
    tiers = [
        tier(1, on_demand("big", labels={"disk": "fast"})),
        tier(2, on_demand("wide", labels={"disk": "slow"}), max_failures=None, has_timeout=False),
    ]
    fast, slow = shape(pods=1, selector={"disk": "fast"}), shape(pods=1, selector={"disk": "slow"})
    assert walk(fast, tiers).outcome is walk(slow, tiers).outcome is Outcome.ARRIVES
    assert walk_together([fast, slow], tiers).outcome is Outcome.FALLS_OFF


def test_shapes_without_room_together_fall_off():
    assert walk_together([shape(pods=5), shape(pods=5)], ladder()).outcome is Outcome.FALLS_OFF
    assert walk_together([shape(pods=5), shape(pods=3)], ladder()).outcome is Outcome.ARRIVES


@given(st.integers(1, 12))
def test_one_shape_walks_the_same_alone_and_as_a_job(pods: int):
    alone, job = walk(shape(pods=pods), ladder()), walk_together([shape(pods=pods)], ladder())
    assert alone == job


def any_pool(*, is_spot: bool, nodes: int, is_known: bool) -> PoolFacts:
    make = spot if is_spot else on_demand
    return make(limits=Limits(nodes=nodes), taints=() if is_known else UNKNOWN)


def any_tier(*, pool: PoolFacts, max_failures: int | None, has_timeout: bool) -> TierFacts:
    return tier(1, pool, max_failures=max_failures, has_timeout=has_timeout)


pools = st.builds(any_pool, is_spot=st.booleans(), nodes=st.integers(0, 8), is_known=st.booleans())
any_tiers = st.builds(
    any_tier, pool=pools, max_failures=st.sampled_from([None, -1, 0, 5]), has_timeout=st.booleans()
)
ladders = st.lists(any_tiers, min_size=1, max_size=5)


@given(ladders)
def test_walk_that_arrives_ends_on_an_on_demand_tier_that_takes_the_job(tiers: list[TierFacts]):
    found = walk(shape(), tiers)
    last = found.steps[-1]
    arrived = last.takes_the_job is True and any(pool.is_on_demand is True for pool in last.tier.node_pools)
    assert (found.outcome is Outcome.ARRIVES) <= arrived


@given(ladders)
def test_known_values_never_contradict_an_earlier_outcome(tiers: list[TierFacts]):
    before = walk(shape(), tiers).outcome
    after = walk(shape(), [known(each) for each in tiers]).outcome
    failed = {Outcome.STUCK, Outcome.FALLS_OFF}
    assert before is Outcome.UNDETERMINED or after is before or {before, after} <= failed


def known(fact: TierFacts) -> TierFacts:
    node_pools = [
        spot(limits=pool.limits, taints=())
        if pool.is_on_demand is False
        else on_demand(limits=pool.limits, taints=())
        for pool in fact.node_pools
    ]
    return tier(
        fact.number,
        *node_pools,
        max_failures=fact.max_failures if isinstance(fact.max_failures, int) else None,
        has_timeout=fact.has_timeout is True,
    )


TAKES_ON_DEMAND = MarketTier(takes_the_job=True, is_on_demand=True)
TAKES_ON_SPOT = MarketTier(takes_the_job=True, is_on_demand=False, max_failures=2, has_timeout=True)


def is_admitted(one: MarketTier) -> bool:
    """Whether the API server and the stack's configuration accept it above the last tier."""
    return one.max_failures is not None or one.has_timeout


upper = st.builds(
    MarketTier,
    takes_the_job=st.booleans(),
    is_on_demand=st.booleans(),
    max_failures=st.sampled_from([None, UNLIMITED, 0, 1, 5]),
    has_timeout=st.booleans(),
).filter(is_admitted)
last = st.builds(
    MarketTier,
    takes_the_job=st.booleans(),
    is_on_demand=st.booleans(),
    max_failures=st.sampled_from([None, UNLIMITED]),
)
played_ladders = st.tuples(st.lists(upper, max_size=4), last).map(lambda drawn: [*drawn[0], drawn[1]])


def facts(number: int, one: MarketTier) -> TierFacts:
    make = on_demand if one.is_on_demand else spot
    pool = make(f"pool-{number}", limits=Limits(nodes=8 if one.takes_the_job else 0))
    return tier(number, pool, max_failures=one.max_failures, has_timeout=one.has_timeout)


def walked(played: Sequence[MarketTier]) -> Outcome:
    return walk(shape(), [facts(number, one) for number, one in enumerate(played, start=1)]).outcome


@settings(max_examples=sized(30, soak=1000))
@given(played_ladders)
def test_walk_ends_where_the_controller_moves_the_job(played: list[MarketTier]) -> None:
    assert walked(played) is end_of(played)


@pytest.mark.parametrize(
    ("above", "end"),
    [
        (TAKES_ON_SPOT, Outcome.ARRIVES),
        (replace(TAKES_ON_SPOT, takes_the_job=False), Outcome.ARRIVES),
        (replace(TAKES_ON_SPOT, takes_the_job=False, has_timeout=False), Outcome.STUCK),
        (replace(TAKES_ON_SPOT, max_failures=UNLIMITED), Outcome.ARRIVES),
        (replace(TAKES_ON_SPOT, max_failures=UNLIMITED, has_timeout=False), Outcome.STAYS),
        (replace(TAKES_ON_SPOT, has_timeout=False), Outcome.ARRIVES),
    ],
    ids=["spot", "no-room", "no-room-no-timeout", "unlimited-with-timeout", "unlimited", "by-failures"],
)
def test_controller_moves_a_job_past_a_tier_as_the_tier_allows(above: MarketTier, end: Outcome) -> None:
    assert end_of([above, TAKES_ON_DEMAND]) is end


EIGHT = Limits(nodes=8)
RESERVED = Taint(key="example.com/reserved", value="other")


@pytest.mark.parametrize(
    ("pods", "pools", "outcome"),
    [
        (16, [on_demand(limits=EIGHT), on_demand(limits=EIGHT)], Outcome.ARRIVES),
        (17, [on_demand(limits=EIGHT), on_demand(limits=EIGHT)], Outcome.FALLS_OFF),
        (8, [on_demand(limits=EIGHT, taints=(SPOT, RESERVED)), on_demand(limits=EIGHT)], Outcome.ARRIVES),
        (16, [on_demand(limits=EIGHT), on_demand(limits=EIGHT, capacity_types=frozenset({"spot"}))], Outcome.FALLS_OFF),
        (16, [on_demand(limits=EIGHT), on_demand(limits=EIGHT, labels=UNKNOWN, taints=UNKNOWN)], Outcome.UNDETERMINED),
        (8, [on_demand(limits=TOO_FEW), on_demand(limits=EIGHT, capacity_types=frozenset({"spot", "on-demand"}))], Outcome.FALLS_OFF),
    ],
    ids=["two are one supply", "too little", "the second alone", "spot does not count", "taints unknown", "both capacity types"],
)  # fmt: skip
def test_pools_that_share_a_label_are_one_supply(pods: int, pools: list[PoolFacts], outcome: Outcome):
    last = tier(2, *pools, max_failures=None, has_timeout=False)
    assert walk(shape(pods=pods), [tier(1, spot()), last]).outcome is outcome


def test_on_demand_pool_without_room_beside_spot_does_not_end_the_walk():
    mixed = tier(1, spot("both"), on_demand("both", limits=TOO_FEW))
    assert walk(shape(), [mixed, tier(2, on_demand(limits=TOO_FEW), max_failures=None)]).outcome is (
        Outcome.FALLS_OFF
    )


def test_pool_that_may_block_keeps_a_tier_from_being_proved():
    two_zones = on_demand(min_values={ZONE: 2}, undecided_by=(ZONE,))
    beside = tier(1, on_demand(), two_zones)
    assert walk(shape(), [tier(1, on_demand())]).outcome is Outcome.ARRIVES
    assert walk(shape(), [beside]).outcome is Outcome.UNDETERMINED
    repelled = tier(1, on_demand(), replace(two_zones, taints=(Taint(key="team", value="nlp"),)))
    assert walk(shape(), [repelled]).outcome is Outcome.ARRIVES


def test_gang_of_one_zone_over_several_pools_is_undetermined():
    last = tier(2, on_demand(limits=EIGHT), on_demand(limits=EIGHT), max_failures=None, has_timeout=False)
    found = walk(shape(pods=16, same_placement=Placement.ZONE), [tier(1, spot()), last])
    assert found.outcome is Outcome.UNDETERMINED


SMALL = replace(P4D, name="p3.2xlarge", capacity=Resources(cpu_millis=8000, memory_mib=61 * 1024, gpus=1), allocatable=Resources(cpu_millis=7900, memory_mib=58 * 1024, gpus=1))  # fmt: skip
FOUR_GPUS = on_demand(machines=(P4D, SMALL), limits=Limits(gpus=4))
WITHOUT_NODES = on_demand(limits=Limits(nodes=0))
LEAST = on_demand(least_priority=-10)


@pytest.mark.parametrize(
    ("last", "outcome"),
    [
        ([FOUR_GPUS], Outcome.UNDETERMINED),
        ([FOUR_GPUS, FOUR_GPUS], Outcome.UNDETERMINED),
        ([WITHOUT_NODES, WITHOUT_NODES], Outcome.FALLS_OFF),
        ([LEAST], Outcome.UNDETERMINED),
        ([on_demand(), on_demand()], Outcome.ARRIVES),
    ],
    ids=["one pool", "two pools", "two pools without nodes", "priority by default", "two pools with room"],
)
def test_shape_that_is_a_guess_falls_off_only_where_any_job_does(last: list[PoolFacts], outcome: Outcome):
    guess = shape(pods=1, is_declared=False, priority=-20)
    end = tier(2, *last, max_failures=None, has_timeout=False)
    assert walk(guess, [tier(1, spot()), end]).outcome is outcome
