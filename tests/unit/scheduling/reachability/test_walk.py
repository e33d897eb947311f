from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.reachability.facts import Limits, PoolFacts, TierFacts
from holdfast.scheduling.reachability.walk import Outcome, walk, walk_together
from tests.support.reachability import ladder, on_demand, shape, spot, tier

TOO_FEW = Limits(nodes=1)
NOBODY = Limits(nodes=0)


def outcome(tiers: Sequence[TierFacts]) -> Outcome:
    return walk(shape(), tiers).outcome


def test_a_job_walks_from_spot_down_to_on_demand():
    found = walk(shape(), ladder())
    assert found.outcome is Outcome.ARRIVES, "both tiers take it, and the first can be left"
    assert found.never_used == (), "it can run on each"


def test_a_spot_tier_that_takes_no_job_is_passed_by_its_timeout_and_said_to_be_of_no_use():
    found = walk(shape(), [tier(1, spot(limits=TOO_FEW)), tier(2, on_demand(), has_timeout=False)])
    assert found.outcome is Outcome.ARRIVES, "the timeout leads past it"
    assert [step.tier.number for step in found.never_used] == [1], "every job waits there in vain"


def test_a_job_is_stuck_on_a_tier_that_takes_it_not_and_has_no_timeout():
    tiers = [tier(1, spot(limits=TOO_FEW), has_timeout=False), tier(2, on_demand())]
    assert outcome(tiers) is Outcome.STUCK, "nothing runs there that could fail five times"


def test_a_job_falls_off_a_ladder_whose_on_demand_pool_is_too_small_for_the_gang():
    found = walk(shape(), [tier(1, spot()), tier(2, on_demand(limits=TOO_FEW))])
    assert found.outcome is Outcome.FALLS_OFF, "one machine for four pods"
    assert [broken.check for broken in found.steps[-1].failed] == ["gang"], "and the message can say why"
    assert found.steps[-1].title == "tier 2 → pool a100", "and where"


def test_a_job_falls_off_a_ladder_that_ends_on_spot():
    found = walk(shape(), [tier(1, spot()), tier(2, spot("h100-spot"))])
    assert found.outcome is Outcome.FALLS_OFF, "there is no on-demand tier"
    assert [broken.check for broken in found.steps[-1].failed] == ["capacity"], "the last one is spot"


def test_a_job_falls_off_a_ladder_whose_last_pool_nobody_makes():
    found = walk(shape(), [tier(1, spot()), tier(2, name="gone")])
    assert found.outcome is Outcome.FALLS_OFF, "the pool is not there"
    assert [broken.check for broken in found.steps[-1].failed] == ["pool"], "which is said"


def test_a_job_that_stays_on_spot_for_ever_is_told_apart():
    stays = tier(1, spot(), max_failures=-1, has_timeout=False)
    assert outcome([stays]) is Outcome.STAYS, "it is said aloud, as the last tier"
    assert outcome([stays, tier(2, on_demand())]) is Outcome.STAYS, "or above tiers that it never comes to"


def test_minus_one_with_a_timeout_still_leads_on():
    assert outcome([tier(1, spot(), max_failures=-1), tier(2, on_demand())]) is Outcome.ARRIVES, (
        "by the timeout"
    )


def test_minus_one_on_a_pool_that_takes_no_job_saves_nobody():
    tiers = [tier(1, spot(limits=NOBODY), max_failures=-1, has_timeout=False)]
    assert outcome(tiers) is Outcome.FALLS_OFF, "it would stay for ever without a node"


@pytest.mark.parametrize(
    "unknown",
    [
        on_demand(taints=UNKNOWN),
        on_demand(machines=UNKNOWN),
        on_demand(limits=Limits(nodes=UNKNOWN)),
        on_demand(is_decided=False),
    ],
)
def test_a_last_tier_of_which_something_is_unknown_proves_nothing(unknown: PoolFacts):
    assert outcome([tier(1, spot()), tier(2, unknown)]) is Outcome.UNDETERMINED, "it may turn out well"


def test_a_pool_of_another_stack_is_unknown_and_never_missing():
    tiers = [tier(1, spot()), tier(2, name="shared", may_be_external=True)]
    assert outcome(tiers) is Outcome.UNDETERMINED, "it cannot be seen from here"


def test_what_is_unknown_above_does_not_hide_that_the_ladder_ends_nowhere():
    tiers = [tier(1, spot(taints=UNKNOWN), has_timeout=False), tier(2, on_demand(limits=TOO_FEW))]
    assert outcome(tiers) is Outcome.FALLS_OFF, "stuck above or fallen off below, it does not arrive"


def test_a_tier_above_that_may_be_on_demand_leaves_the_end_open():
    tiers = [
        tier(1, spot(capacity_types=frozenset({"on-demand", "spot"}), is_decided=False)),
        tier(2, spot("other")),
    ]
    assert outcome(tiers) is Outcome.UNDETERMINED, "the job may be on on-demand capacity there"


def test_a_tier_that_may_take_no_job_and_has_no_timeout_leaves_the_end_open():
    tiers = [tier(1, spot(taints=UNKNOWN), has_timeout=False), tier(2, on_demand())]
    assert outcome(tiers) is Outcome.UNDETERMINED, "the job may be stuck there"


def test_of_several_node_pools_of_one_pool_one_that_takes_the_job_is_enough():
    found = outcome([tier(1, spot()), tier(2, on_demand(limits=TOO_FEW), on_demand(title="a100-b"))])
    assert found is Outcome.ARRIVES, "pods select the pool and go where there is room"


def test_a_ladder_without_tiers_is_the_callers_to_refuse():
    with pytest.raises(ValueError, match="without tiers"):
        walk(shape(), [])


def test_a_tier_takes_several_shapes_only_if_it_takes_each():
    tiers = [
        tier(1, on_demand("big", labels={"disk": "fast"})),
        tier(2, on_demand("wide", labels={"disk": "slow"}), max_failures=None, has_timeout=False),
    ]
    fast, slow = shape(pods=1, selector={"disk": "fast"}), shape(pods=1, selector={"disk": "slow"})
    assert walk(fast, tiers).outcome is walk(slow, tiers).outcome is Outcome.ARRIVES, "each by itself arrives"
    assert walk_together([fast, slow], tiers).outcome is Outcome.FALLS_OFF, "but never both on one tier"


def test_shapes_that_have_no_room_beside_each_other_fall_off():
    assert walk_together([shape(pods=5), shape(pods=5)], ladder()).outcome is Outcome.FALLS_OFF, (
        "ten on eight"
    )
    assert walk_together([shape(pods=5), shape(pods=3)], ladder()).outcome is Outcome.ARRIVES, (
        "eight on eight"
    )


@given(st.integers(1, 12))
def test_one_shape_walks_alike_alone_and_as_a_job_of_one(pods: int):
    alone, job = walk(shape(pods=pods), ladder()), walk_together([shape(pods=pods)], ladder())
    assert alone == job, "a job of one template is a shape"


def any_pool(*, is_spot: bool, nodes: int, is_known: bool) -> PoolFacts:
    make = spot if is_spot else on_demand
    return make(limits=Limits(nodes=nodes), taints=() if is_known else UNKNOWN)


def any_tier(*, pool: PoolFacts, max_failures: int | None, has_timeout: bool) -> TierFacts:
    return tier(1, pool, max_failures=max_failures, has_timeout=has_timeout)


pools = st.builds(any_pool, is_spot=st.booleans(), nodes=st.integers(0, 8), is_known=st.booleans())
tiers = st.builds(
    any_tier, pool=pools, max_failures=st.sampled_from([None, -1, 0, 5]), has_timeout=st.booleans()
)
ladders = st.lists(tiers, min_size=1, max_size=5)


@given(ladders)
def test_a_walk_that_arrives_ends_on_an_on_demand_tier_that_takes_the_job(rungs: list[TierFacts]):
    found = walk(shape(), rungs)
    last = found.steps[-1]
    arrived = last.takes_the_job is True and any(pool.is_on_demand is True for pool in last.tier.node_pools)
    assert (found.outcome is Outcome.ARRIVES) <= arrived, "nothing else is an arrival"


@given(ladders)
def test_learning_what_was_unknown_never_contradicts_what_was_told(rungs: list[TierFacts]):
    told = walk(shape(), rungs).outcome
    learned = walk(shape(), [known(each) for each in rungs]).outcome
    failed = {Outcome.STUCK, Outcome.FALLS_OFF}
    assert told is Outcome.UNDETERMINED or learned is told or {told, learned} <= failed, "a proof stays one"


def known(rung: TierFacts) -> TierFacts:
    node_pools = [
        spot(limits=pool.limits, taints=())
        if pool.is_on_demand is False
        else on_demand(limits=pool.limits, taints=())
        for pool in rung.node_pools
    ]
    return tier(
        rung.number,
        *node_pools,
        max_failures=rung.max_failures if isinstance(rung.max_failures, int) else None,
        has_timeout=rung.has_timeout is True,
    )
