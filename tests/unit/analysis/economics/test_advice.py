import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.analysis.economics.checkpoint_interval import Checkpointing
from holdfast.analysis.economics.tier_costs import Market, Rung, advise, judge, poisson_quantile

rates = st.floats(0, 5)
markets = st.builds(
    Market, price=st.floats(0.05, 1.5), evictions_per_hour=rates, hours_per_eviction=st.floats(0, 2)
)


def market(**changed: float) -> Market:
    return Market(**{"price": 0.32, "evictions_per_hour": 0.1, "hours_per_eviction": 0.2, **changed})


@pytest.mark.parametrize(("mean", "quantile"), [(0, 0), (0.05, 0), (1, 3), (4.8, 9), (10, 15), (800, 847)])
def test_95_of_100_counts_are_at_most_the_quantile(mean: float, quantile: int):
    assert poisson_quantile(mean, 0.95) == quantile, "the tables of the Poisson distribution say so"


def test_a_quantile_of_a_great_mean_joins_the_one_that_is_summed():
    summed, approximated = poisson_quantile(99_999, 0.95), poisson_quantile(100_001, 0.95)
    assert abs(approximated - summed - 2) <= 2, "where the approximation takes over there is no step"


def test_a_job_stays_through_the_evictions_that_bad_luck_alone_may_bring():
    advice = advise(market(), hours=48)
    assert advice.by_luck == 9, "4.8 evictions are expected, 9 are not yet unusual"
    assert advice.max_failures == 10, "the move is made when the count is reached, so nine are stayed through"


def test_a_deadline_caps_it():
    advice = advise(market(), hours=48, slack_hours=1.05)
    assert advice.max_failures == 5, "five restarts of 12 minutes fit into an hour"
    assert "deadline" in advice.reason, "the reader sees what decided"


def test_money_caps_it():
    advice = advise(market(price=0.8, hours_per_eviction=1.0, evictions_per_hour=0.2), hours=20)
    assert advice.max_failures == 5, "0.25 evictions per hour for 20 h cost what on-demand does"
    assert "on-demand" in advice.reason, "the reader sees what decided"


def test_a_pool_on_which_training_costs_more_than_on_demand_is_left_at_the_first_eviction():
    advice = advise(market(evictions_per_hour=20), hours=10)
    assert advice.max_failures == 0, "0 moves the job on at once"
    assert "leave this pool out" in advice.reason, "and better than 0 is not to have it"


@given(markets, st.floats(1, 200), st.floats(0, 100))
def test_the_advice_never_exceeds_its_own_bounds(given_market: Market, hours: float, slack: float):
    advice = advise(given_market, hours=hours, slack_hours=slack)
    assert 0 <= advice.max_failures <= min(advice.by_luck + 1, advice.by_money, advice.by_time), (
        "each bound holds"
    )


@given(markets, st.floats(1, 200), st.floats(0, 10), st.floats(0, 10))
def test_more_time_never_lowers_it(given_market: Market, hours: float, slack: float, more: float):
    short, long = (advise(given_market, hours=hours, slack_hours=time) for time in (slack, slack + more))
    assert short.max_failures <= long.max_failures, (
        "a later deadline leaves room for at least as many restarts"
    )


@pytest.mark.parametrize(("hours", "slack", "field"), [(0.0, None, "hours"), (1.0, -1.0, "slack_hours")])
def test_times_that_cannot_be_are_refused_by_name(hours: float, slack: float | None, field: str):
    with pytest.raises(ValueError, match=f"^{field}: got"):
        advise(market(), hours=hours, slack_hours=slack)


@given(markets)
def test_a_market_pays_just_below_its_break_even_rate(given_market: Market):
    rate = given_market.break_even_evictions_per_hour
    assume(0 < rate < math.inf)
    below = market(
        price=given_market.price,
        hours_per_eviction=given_market.hours_per_eviction,
        evictions_per_hour=rate * 0.999,
    )
    above = market(
        price=given_market.price,
        hours_per_eviction=given_market.hours_per_eviction,
        evictions_per_hour=rate * 1.001,
    )
    assert below.pays, "below the break-even spot is cheaper"
    assert not above.pays, "above it on-demand is"


def test_a_rung_dearer_than_one_below_it_is_left_out():
    ladder = [
        Rung(pool="h100-spot", market=market(price=0.9, evictions_per_hour=1)),
        Rung(pool="a100-spot", market=market()),
        Rung(pool="a100", market=Market(price=1)),
    ]
    first, second, last = judge(ladder)
    assert not first.is_worth_it, "0.9 with an eviction each hour costs more than a100-spot"
    assert first.cheapest_below is ladder[1], "it is held against the cheapest below, not against the next"
    assert second.is_worth_it, "0.33 against 1"
    assert last.is_worth_it, "a ladder needs an end"


@given(st.lists(markets, min_size=2, max_size=5))
def test_at_the_rate_a_rung_is_given_it_costs_what_the_cheapest_below_does(given_markets: list[Market]):
    verdict = judge([Rung(pool=str(place), market=each) for place, each in enumerate(given_markets)])[0]
    assume(verdict.cheapest_below is not None and math.isfinite(verdict.evictions_left))
    here = verdict.rung.market
    rate = here.evictions_per_hour + verdict.evictions_left
    assume(rate >= 0)
    at_the_limit = market(
        price=here.price, hours_per_eviction=here.hours_per_eviction, evictions_per_hour=rate
    )
    assert verdict.cheapest_below is not None, "assumed above"
    assert at_the_limit.cost_per_useful_hour == pytest.approx(
        verdict.cheapest_below.market.cost_per_useful_hour
    ), "that is what break-even means"


def checkpoints(**changed: float) -> Checkpointing:
    numbers = {"size_gib": 100.0, "gib_per_second": 10.0, "notice_seconds": 25.0, "evictions_per_hour": 0.1}
    return Checkpointing(**{**numbers, **changed})


def test_a_checkpoint_that_fits_into_the_notice_needs_no_schedule_for_evictions():
    assert checkpoints().fits_in_notice, "10 s of 25 s"
    assert math.isinf(checkpoints().interval_seconds), "and no loss comes without notice"


def test_losses_without_notice_need_a_schedule_whatever_the_notice():
    assert checkpoints(losses_without_notice_per_hour=0.05).interval_seconds == pytest.approx(1200), (
        "√(2 · 10 · 72000)"
    )


def test_the_little_notice_of_azure_leaves_the_schedule_alone_to_save_the_steps():
    late = checkpoints(notice_seconds=8.0)
    assert not late.fits_in_notice, "10 s do not fit into 8 s"
    assert late.interval_seconds == pytest.approx(math.sqrt(2 * 10 * 36000)), (
        "so each eviction counts as a loss"
    )


@given(st.floats(1, 500), st.floats(0.1, 20), st.floats(0.001, 1), st.floats(0.5, 2))
def test_no_other_interval_loses_less_time(size: float, speed: float, rate: float, factor: float):
    job = checkpoints(size_gib=size, gib_per_second=speed, notice_seconds=0.0, evictions_per_hour=rate)
    other = job.interval_seconds * factor
    lost = job.write_seconds / other + rate * other / 2 / 3600
    assert job.overhead <= lost + 1e-12, "Young's interval is the minimum of writing and repeating"


@pytest.mark.parametrize("field", ["size_gib", "gib_per_second", "notice_seconds", "evictions_per_hour"])
def test_a_negative_number_is_refused_by_name(field: str):
    with pytest.raises(ValueError, match=f"^{field}: got -1.0"):
        checkpoints(**{field: -1.0})


def test_checkpoints_that_are_written_at_no_speed_are_refused():
    with pytest.raises(ValueError, match=r"^gib_per_second: got 0"):
        checkpoints(gib_per_second=0.0)


@pytest.mark.parametrize("field", ["price", "evictions_per_hour", "hours_per_eviction"])
def test_a_market_with_a_negative_number_is_refused_by_name(field: str):
    with pytest.raises(ValueError, match=f"^{field}: got -1.0"):
        market(**{field: -1.0})
