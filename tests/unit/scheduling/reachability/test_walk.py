from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.ladder import UNLIMITED
from holdfast.scheduling.reachability.facts import Limits, PoolFacts, TierFacts
from holdfast.scheduling.reachability.walk import Outcome, walk, walk_together
from tests.support.builders.reachability import ladder, on_demand, shape, spot, tier
from tests.support.fakes.job_world import MarketTier, end_of

TOO_FEW = Limits(nodes=1)
NO_NODES = Limits(nodes=0)


def outcome(tiers: Sequence[TierFacts]) -> Outcome:
    return walk(shape(), tiers).outcome


def test_job_arrives_on_demand_from_spot():
    found = walk(shape(), ladder())
    assert found.outcome is Outcome.ARRIVES, "both tiers take it, and it can leave the first"
    assert found.never_used == (), "it can run on both"


def test_tier_without_room_is_passed_by_its_timeout_and_reported_as_never_used():
    found = walk(shape(), [tier(1, spot(limits=TOO_FEW)), tier(2, on_demand(), has_timeout=False)])
    assert found.outcome is Outcome.ARRIVES, "the timeout leads past it"
    assert [step.tier.number for step in found.never_used] == [1], "every job waits there without running"


def test_job_is_stuck_on_a_tier_without_room_and_timeout():
    tiers = [tier(1, spot(limits=TOO_FEW), has_timeout=False), tier(2, on_demand())]
    assert outcome(tiers) is Outcome.STUCK, "no pod runs there, so none fails five times"


def test_job_falls_off_when_the_last_pool_is_too_small_for_the_gang():
    found = walk(shape(), [tier(1, spot()), tier(2, on_demand(limits=TOO_FEW))])
    assert found.outcome is Outcome.FALLS_OFF, "one machine for four pods"
    assert [failed.check for failed in found.steps[-1].failed] == ["gang"], "the failed check is known"
    assert found.steps[-1].title == "tier 2 → pool a100", "and the tier"


def test_job_falls_off_a_ladder_that_ends_on_spot():
    found = walk(shape(), [tier(1, spot()), tier(2, spot("h100-spot"))])
    assert found.outcome is Outcome.FALLS_OFF, "there is no on-demand tier"
    assert [failed.check for failed in found.steps[-1].failed] == ["capacity"], "the last one is spot"


def test_job_falls_off_when_the_last_pool_does_not_exist():
    found = walk(shape(), [tier(1, spot()), tier(2, name="gone")])
    assert found.outcome is Outcome.FALLS_OFF, "no resource makes the pool"
    assert [failed.check for failed in found.steps[-1].failed] == ["pool"], "the failed check is known"


def test_job_stays_on_a_spot_tier_with_unlimited_failures():
    stays = tier(1, spot(), max_failures=-1, has_timeout=False)
    assert outcome([stays]) is Outcome.STAYS, "as the last tier"
    assert outcome([stays, tier(2, on_demand())]) is Outcome.STAYS, "or above tiers that it never reaches"


def test_tier_with_unlimited_failures_is_left_by_its_timeout():
    assert outcome([tier(1, spot(), max_failures=-1), tier(2, on_demand())]) is Outcome.ARRIVES, (
        "by the timeout"
    )


def test_unlimited_failures_on_a_pool_without_nodes_falls_off():
    tiers = [tier(1, spot(limits=NO_NODES), max_failures=-1, has_timeout=False)]
    assert outcome(tiers) is Outcome.FALLS_OFF, "the job would never get a node"


def test_job_stays_only_if_it_certainly_leaves_every_tier_above():
    may_hold = tier(1, spot(taints=UNKNOWN), has_timeout=False)
    stays = tier(2, spot("b"), max_failures=-1, has_timeout=False)
    assert outcome([may_hold, stays]) is Outcome.UNDETERMINED, "the job may be stuck above"
    assert outcome([tier(1, spot(taints=UNKNOWN)), stays]) is Outcome.STAYS, "the timeout leads past it"


def test_job_stays_only_if_no_tier_above_may_be_on_demand():
    may_arrive = tier(1, spot(capacity_types=frozenset({"on-demand", "spot"}), is_decided=False))
    stays = tier(2, spot("b"), max_failures=-1, has_timeout=False)
    assert outcome([may_arrive, stays]) is Outcome.UNDETERMINED, "the job may arrive above"


@pytest.mark.parametrize(
    "unknown",
    [
        on_demand(taints=UNKNOWN),
        on_demand(machines=UNKNOWN),
        on_demand(limits=Limits(nodes=UNKNOWN)),
        on_demand(is_decided=False),
    ],
)
def test_unknown_value_of_the_last_tier_leaves_the_outcome_undetermined(unknown: PoolFacts):
    assert outcome([tier(1, spot()), tier(2, unknown)]) is Outcome.UNDETERMINED, (
        "the value may turn out either way"
    )


def test_pool_of_another_stack_leaves_the_outcome_undetermined():
    tiers = [tier(1, spot()), tier(2, name="shared", may_be_external=True)]
    assert outcome(tiers) is Outcome.UNDETERMINED, "it cannot be seen from here"


def test_unknown_value_above_does_not_hide_a_failed_last_tier():
    tiers = [tier(1, spot(taints=UNKNOWN), has_timeout=False), tier(2, on_demand(limits=TOO_FEW))]
    assert outcome(tiers) is Outcome.FALLS_OFF, "stuck above or fallen off below, it does not arrive"


def test_tier_above_that_may_be_on_demand_leaves_the_outcome_undetermined():
    tiers = [
        tier(1, spot(capacity_types=frozenset({"on-demand", "spot"}), is_decided=False)),
        tier(2, spot("other")),
    ]
    assert outcome(tiers) is Outcome.UNDETERMINED, "the job may arrive there"


def test_tier_above_that_may_hold_the_job_leaves_the_outcome_undetermined():
    tiers = [tier(1, spot(taints=UNKNOWN), has_timeout=False), tier(2, on_demand())]
    assert outcome(tiers) is Outcome.UNDETERMINED, "the job may be stuck there"


def test_one_fitting_node_pool_of_several_with_one_name_is_enough():
    found = outcome([tier(1, spot()), tier(2, on_demand(limits=TOO_FEW), on_demand(title="a100-b"))])
    assert found is Outcome.ARRIVES, "pods select the name and run where they fit"


def test_ladder_without_tiers_raises():
    with pytest.raises(ValueError, match="without tiers"):
        walk(shape(), [])


def test_tier_takes_a_job_of_several_shapes_only_if_it_takes_each():
    tiers = [
        tier(1, on_demand("big", labels={"disk": "fast"})),
        tier(2, on_demand("wide", labels={"disk": "slow"}), max_failures=None, has_timeout=False),
    ]
    fast, slow = shape(pods=1, selector={"disk": "fast"}), shape(pods=1, selector={"disk": "slow"})
    assert walk(fast, tiers).outcome is walk(slow, tiers).outcome is Outcome.ARRIVES, "each arrives by itself"
    assert walk_together([fast, slow], tiers).outcome is Outcome.FALLS_OFF, "but no tier takes both"


def test_shapes_without_room_together_fall_off():
    assert walk_together([shape(pods=5), shape(pods=5)], ladder()).outcome is Outcome.FALLS_OFF, (
        "ten pods on eight nodes"
    )
    assert walk_together([shape(pods=5), shape(pods=3)], ladder()).outcome is Outcome.ARRIVES, (
        "eight on eight"
    )


@given(st.integers(1, 12))
def test_one_shape_walks_the_same_alone_and_as_a_job(pods: int):
    alone, job = walk(shape(pods=pods), ladder()), walk_together([shape(pods=pods)], ladder())
    assert alone == job, "a job of one template is one shape"


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
    assert (found.outcome is Outcome.ARRIVES) <= arrived, "no other step is an arrival"


@given(ladders)
def test_known_values_never_contradict_an_earlier_outcome(tiers: list[TierFacts]):
    before = walk(shape(), tiers).outcome
    after = walk(shape(), [known(each) for each in tiers]).outcome
    failed = {Outcome.STUCK, Outcome.FALLS_OFF}
    assert before is Outcome.UNDETERMINED or after is before or {before, after} <= failed, (
        "a proof stays valid"
    )


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


@given(played_ladders)
def test_walk_ends_where_the_controller_moves_the_job(played: list[MarketTier]) -> None:
    assert walked(played) is end_of(played), "the walk predicts the controller's decisions"


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
    assert end_of([above, TAKES_ON_DEMAND]) is end, "the walk is compared with this"
