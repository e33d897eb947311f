"""What makes a ladder one that can be walked to its end."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.ladder import UNLIMITED, Ladder, Tier, ladder_problems, tier_problems
from tests.support.builders.configurations import pool

if TYPE_CHECKING:
    from holdfast.scheduling.errors import Problem

AT = "holdfast:platform.namespaces[0].ladder"
WAIT = timedelta(minutes=15)

POOLS = (
    pool("cpu"),
    pool("cpu-spot", capacity=CapacityType.SPOT),
    pool("a100-spot", capacity=CapacityType.SPOT, has_gpus=True),
    pool("h100-spot", capacity=CapacityType.SPOT, has_gpus=True),
    pool("a100", has_gpus=True),
)


def found(*tiers: Tier) -> list[Problem]:
    return list(ladder_problems(Ladder(tiers=tiers), POOLS, AT))


def only(*tiers: Tier) -> Problem:
    problems = found(*tiers)
    assert len(problems) == 1, f"one mistake is one problem, not {[str(problem) for problem in problems]}"
    return problems[0]


def spot(name: str = "a100-spot") -> Tier:
    return Tier(pool=name, max_failures=5, procurement_timeout=WAIT)


def test_several_spot_pools_and_then_on_demand_is_a_ladder() -> None:
    assert not found(spot(), spot("h100-spot"), Tier(pool="a100")), "this is the form the documentation shows"


def test_on_demand_alone_is_a_ladder() -> None:
    assert not found(Tier(pool="cpu")), "a namespace need not use spot"


def test_a_spot_pool_may_be_last_when_it_says_so_aloud() -> None:
    assert not found(Tier(pool="cpu-spot", max_failures=UNLIMITED)), "-1 is the author's word for it"


@pytest.mark.parametrize("max_failures", [None, 0, 5])
def test_a_spot_pool_is_not_last_by_accident(max_failures: int | None) -> None:
    problem = only(
        spot("h100-spot"), Tier(pool="a100-spot", max_failures=max_failures, procurement_timeout=WAIT)
    )
    assert problem.field == f"{AT}[1].maxFailures", "the field to change is named"
    assert "maxFailures: -1" in problem.fix, "how to mean it is said"
    assert "pool: a100}" in problem.fix, "a pool with the same kind of machine is offered as the end"


def test_an_unknown_pool_is_named_with_its_nearest() -> None:
    problem = only(spot(), Tier(pool="a10"))
    assert problem.field == f"{AT}[1].pool", "the tier is named"
    assert problem.fix == 'Write "a100".', "the nearest name is the likely one"
    assert all(known.name in problem.allowed for known in POOLS), "every pool that would do is listed"


def test_a_pool_like_no_other_is_offered_to_be_made() -> None:
    problem = only(Tier(pool="inferentia"))
    assert 'add a pool called "inferentia"' in problem.fix, "no name resembles it, so it may be meant"


def test_a_pool_is_in_a_ladder_once() -> None:
    problem = only(spot(), spot(), Tier(pool="a100"))
    assert problem.field == f"{AT}[1].pool", "the second of the two is superfluous"
    assert "[0]" in problem.fix, "the first of the two is named"


def test_an_empty_ladder_leads_nowhere() -> None:
    assert only().field == AT, "the ladder as a whole is at fault"


@pytest.mark.parametrize("max_failures", [None, UNLIMITED])
def test_a_tier_that_is_never_left_hides_those_below_it(max_failures: int | None) -> None:
    problem = only(Tier(pool="a100-spot", max_failures=max_failures), Tier(pool="a100"))
    assert problem.field == f"{AT}[0]", "the tier that holds the job is named"
    assert "procurementTimeout" in problem.fix, "one of the two ways on is enough"


@pytest.mark.parametrize(
    "tier", [Tier(pool="a100-spot", max_failures=0), Tier(pool="a100-spot", procurement_timeout=WAIT)]
)
def test_one_way_on_is_enough(tier: Tier) -> None:
    assert not found(tier, Tier(pool="a100")), "failures or waiting: either moves the job on"


@pytest.mark.parametrize(
    ("tier", "field"),
    [
        (Tier(pool="a100", max_failures=3), "maxFailures"),
        (Tier(pool="a100", procurement_timeout=WAIT), "procurementTimeout"),
    ],
)
def test_limits_on_the_last_tier_lead_nowhere(tier: Tier, field: str) -> None:
    problem = only(spot(), tier)
    assert problem.field == f"{AT}[1].{field}", "a limit that nothing follows is a misunderstanding"


def test_tiers_with_and_without_gpus_do_not_mix() -> None:
    problem = only(spot(), Tier(pool="cpu"))
    assert problem.field == AT, "neither tier alone is at fault"
    assert "a100-spot with GPUs, cpu without GPUs" in problem.value, "it is shown which is which"


def test_nothing_is_said_of_pools_that_could_not_be_read() -> None:
    problems = list(
        tier_problems({1: Tier(pool="broken")}, 2, {}, AT, may_exist=lambda name: name == "broken")
    )
    assert not problems, "the pool's own problem is reported where it is"


def test_the_end_of_a_ladder_is_where_it_was_written_even_if_the_rest_is_unread() -> None:
    problems = list(tier_problems({0: spot()}, 2, {known.name: known for known in POOLS}, AT))
    assert not problems, "tier 0 of two is not last, though the last one could not be read"


tiers = st.builds(
    Tier,
    pool=st.sampled_from([known.name for known in POOLS]),
    max_failures=st.none() | st.integers(min_value=UNLIMITED, max_value=9),
    procurement_timeout=st.none() | st.just(WAIT),
)


@given(st.lists(tiers, max_size=5))
def test_a_ladder_without_problems_ends_on_demand_or_for_ever_and_gets_there(listed: list[Tier]) -> None:
    if found(*listed):
        return
    by_name = {known.name: known for known in POOLS}
    last = listed[-1]
    assert by_name[last.pool].capacity is CapacityType.ON_DEMAND or last.max_failures == UNLIMITED, (
        "the one thing a ladder promises is its end"
    )
    assert all(tier.can_be_left for tier in listed[:-1]), "and that it can be reached"
