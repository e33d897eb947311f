from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import (
    ELSEWHERE_BETWEEN,
    ELSEWHERE_NEEDS_TIMEOUT,
    LEAST_GIVE_UP_AFTER,
    MOST_TIMED_FAILURES,
    NEEDS_TIMEOUT,
    NEVER,
    SET_TIMEOUT,
    UNLIMITED,
    Ladder,
    Tier,
)
from pulumi_holdfast.ladder.ladder_rules import RULES_OF_TIERS, ladder_problems, timing_problems
from tests.support.builders.configurations import pool

AT = "holdfast:platform.namespaces[0].ladder"
WAIT = timedelta(minutes=15)

POOLS = (
    pool("cpu"),
    pool("cpu-spot", capacity=CapacityType.SPOT),
    pool("a100-spot", capacity=CapacityType.SPOT, has_gpus=True),
    pool("h100-spot", capacity=CapacityType.SPOT, has_gpus=True),
    pool("h100-block", capacity=CapacityType.RESERVED, has_gpus=True),
    pool("a100", has_gpus=True),
    pool("h100", has_gpus=True),
)


def found(*tiers: Tier) -> list[Problem]:
    return list(ladder_problems(Ladder(tiers=tiers), POOLS, AT))


def only(*tiers: Tier) -> Problem:
    problems = found(*tiers)
    assert len(problems) == 1, f"one problem, not {[str(problem) for problem in problems]}"
    return problems[0]


def spot(name: str = "a100-spot") -> Tier:
    return Tier(pool=name, max_failures=5, procurement_timeout=WAIT)


@pytest.mark.parametrize(
    ("tiers", "reason"),
    [
        ((spot(), spot("h100-spot"), Tier(pool="a100")), "the form that the documentation shows"),
        ((Tier(pool="cpu"),), "a namespace need not use spot"),
        ((Tier(pool="cpu-spot", max_failures=UNLIMITED),), "-1 declares that jobs stay on spot"),
        ((Tier(pool="a100", max_failures=0), Tier(pool="h100")), "failures move the job on from on-demand"),
        ((Tier(pool="a100-spot", procurement_timeout=WAIT), Tier(pool="a100")), "a timeout moves the job on"),
    ],
)
def test_valid_ladder_has_no_problems(tiers: tuple[Tier, ...], reason: str) -> None:
    assert not found(*tiers), reason


@pytest.mark.parametrize("max_failures", [None, 0, 5])
def test_spot_pool_is_not_last_otherwise(max_failures: int | None) -> None:
    problem = only(
        spot("h100-spot"), Tier(pool="a100-spot", max_failures=max_failures, procurement_timeout=WAIT)
    )
    assert problem.field == f"{AT}[1].maxFailures"
    assert "maxFailures: -1" in problem.fix
    assert "pool: a100}" in problem.fix


def test_unknown_pool_is_reported_with_the_nearest_name() -> None:
    problem = only(spot(), Tier(pool="a10"))
    assert problem.field == f"{AT}[1].pool"
    assert problem.fix == 'Write "a100".'
    assert all(known.name in problem.allowed for known in POOLS)
    assert 'add a pool called "inferentia"' in only(Tier(pool="inferentia")).fix


def test_pool_is_in_a_ladder_once_and_a_ladder_has_a_pool() -> None:
    problem = only(spot(), spot(), Tier(pool="a100"))
    assert problem.field == f"{AT}[1].pool"
    assert "[0]" in problem.fix
    assert only().field == AT


@pytest.mark.parametrize("max_failures", [None, UNLIMITED])
def test_on_demand_tier_that_is_never_left_is_reported(max_failures: int | None) -> None:
    problem = only(Tier(pool="a100", max_failures=max_failures), Tier(pool="h100"))
    assert problem.field == f"{AT}[0]"
    assert "Add maxFailures, such as 5, or procurementTimeout" in problem.fix


@pytest.mark.parametrize("max_failures", [None, UNLIMITED, 0, 5])
def test_spot_tier_without_a_timeout_is_reported_in_the_words_of_the_api_server(
    max_failures: int | None,
) -> None:
    problem = only(Tier(pool="a100-spot", max_failures=max_failures), Tier(pool="a100"))
    assert problem.allowed == NEEDS_TIMEOUT, "a market that is sold out never counts a failure"
    messages = [str(cel["message"]) for rule in RULES_OF_TIERS for cel in rule.cel]
    assert f"{NEEDS_TIMEOUT}: {SET_TIMEOUT}" in messages, "one text in both places"


@pytest.mark.parametrize(
    ("tier", "field"),
    [
        (Tier(pool="a100", max_failures=3), "maxFailures"),
        (Tier(pool="a100", procurement_timeout=WAIT), "procurementTimeout"),
        (Tier(pool="a100", max_price=40.0), "maxPrice"),
    ],
)
def test_limits_on_the_last_tier_are_reported(tier: Tier, field: str) -> None:
    problem = only(spot(), tier)
    assert problem.field == f"{AT}[1].{field}"


def test_tiers_with_and_without_gpus_are_reported() -> None:
    problem = only(spot(), Tier(pool="cpu"))
    assert problem.field == AT
    assert "a100-spot with GPUs, cpu without GPUs" in problem.value


tiers = st.builds(
    Tier,
    pool=st.sampled_from([known.name for known in POOLS]),
    max_failures=st.none() | st.integers(min_value=UNLIMITED, max_value=9),
    procurement_timeout=st.none() | st.just(WAIT),
)


@given(st.lists(tiers, max_size=5))
def test_valid_ladder_ends_on_demand_or_stays_and_its_end_is_reachable(listed: list[Tier]) -> None:
    if found(*listed):
        return
    by_name = {known.name: known for known in POOLS}
    last = listed[-1]
    assert by_name[last.pool].capacity is CapacityType.ON_DEMAND or last.max_failures == UNLIMITED
    assert all(
        tier.is_left_for_certain(is_on_demand=by_name[tier.pool].capacity is CapacityType.ON_DEMAND)
        for tier in listed[:-1]
    )


NAMESPACE = "holdfast:platform.namespaces[0].fallback"
HOUR = timedelta(hours=1)
TWO_TIERS = (Tier(pool="a100-spot", max_failures=5), Tier(pool="a100"))


@pytest.mark.parametrize(
    "ladder",
    [
        Ladder(tiers=TWO_TIERS),
        Ladder(tiers=TWO_TIERS, return_after=HOUR),
        Ladder(tiers=TWO_TIERS, return_after=HOUR, hold_timeout=HOUR),
        Ladder(tiers=TWO_TIERS[1:], give_up_after=HOUR),
    ],
)
def test_valid_timing_has_no_problems(ladder: Ladder) -> None:
    assert list(timing_problems(ladder, NAMESPACE)) == []


def test_giving_up_before_a_node_can_start_is_a_problem() -> None:
    ladder = Ladder(tiers=TWO_TIERS, give_up_after=LEAST_GIVE_UP_AFTER)
    assert list(timing_problems(ladder, NAMESPACE)) == []
    short = replace(ladder, give_up_after=LEAST_GIVE_UP_AFTER - timedelta(seconds=1))
    (problem,) = timing_problems(short, NAMESPACE)
    assert problem.field == f"{NAMESPACE}.giveUpAfter"
    assert "Set giveUpAfter to 15m or more" in problem.fix


def test_timing_that_has_no_effect_is_a_problem() -> None:
    (problem,) = timing_problems(Ladder(tiers=TWO_TIERS[1:], return_after=4 * HOUR), NAMESPACE)
    assert problem.field == f"{NAMESPACE}.returnAfter"
    assert "4h on a ladder of one tier" in problem.value
    for ladder in (Ladder(tiers=TWO_TIERS, return_after=NEVER), Ladder(tiers=TWO_TIERS[1:])):
        assert list(timing_problems(ladder, NAMESPACE)) == []
        (problem,) = timing_problems(replace(ladder, hold_timeout=HOUR), NAMESPACE)
        assert problem.field == f"{NAMESPACE}.holdTimeout"
        assert "Set returnAfter to a time" in problem.fix
    many = (Tier(pool="a", max_failures=MOST_TIMED_FAILURES + 1), Tier(pool="b"))
    (problem,) = timing_problems(Ladder(tiers=many, failure_window=HOUR), NAMESPACE)
    assert problem.field == f"{NAMESPACE}.failureWindow"


def test_a_reserved_tier_needs_a_time_limit_and_is_no_end() -> None:
    block = Tier(pool="h100-block", max_failures=5)
    (first,) = found(block, Tier(pool="a100"))
    assert first.value.startswith('the reserved tier "h100-block"')
    (last,) = found(spot(), Tier(pool="h100-block"))
    assert "a reserved pool that is last" in last.allowed
    assert not found(spot(), Tier(pool="h100-block", max_failures=UNLIMITED))


def test_a_cap_below_the_price_is_reported() -> None:
    cheap = replace(spot(), price=3.0, max_price=2.5)
    below = only(cheap, Tier(pool="a100"))
    assert (below.field, below.value) == (f"{AT}[0].maxPrice", "2.5, below price, 3")
    assert not found(replace(cheap, max_price=3.0), Tier(pool="a100"))


def elsewhere(pool: str = "a100-spot", cluster: str = "us-east-2", wait: timedelta | None = WAIT) -> Tier:
    return Tier(pool=pool, cluster=cluster, max_failures=3, procurement_timeout=wait)


def test_tier_elsewhere_is_none_of_this_stacks_pools() -> None:
    ladder = (spot(), elsewhere(), elsewhere(cluster="us-west-2"), elsewhere("a100"), elsewhere("cpu"))
    assert not found(*ladder, Tier(pool="a100"))
    assert not found(spot(), elsewhere("of-theirs"), Tier(pool="a100"))


@pytest.mark.parametrize(
    ("tiers", "field", "allowed"),
    [
        ((elsewhere(), Tier(pool="a100")), "[0].cluster", ELSEWHERE_BETWEEN),
        ((spot(), Tier(pool="a100", cluster="us-east-2")), "[1].cluster", ELSEWHERE_BETWEEN),
        ((spot(), elsewhere(wait=None), Tier(pool="a100")), "[1]", ELSEWHERE_NEEDS_TIMEOUT),
        ((spot(), elsewhere(), elsewhere(), Tier(pool="a100")), "[2].pool", "each pool once in a ladder"),
    ],
)
def test_tier_elsewhere_is_between_tiers_of_this_stack_and_has_a_timeout(
    tiers: tuple[Tier, ...], field: str, allowed: str
) -> None:
    problem = only(*tiers)
    assert (problem.field, problem.allowed) == (f"{AT}{field}", allowed)
