import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pulumi_holdfast.analysis.economics.checkpoint_interval import Checkpointing
from pulumi_holdfast.analysis.economics.cost_model import (
    PRINTED,
    WORKED_EXAMPLE,
    MixedJob,
    table,
    tolerated_extension,
)
from pulumi_holdfast.analysis.economics.tier_costs import (
    PoolRates,
    PricedTier,
    advise,
    compare_tiers,
    poisson_quantile,
)

shares = st.floats(0, 1)
prices = st.floats(0.01, 1)
jobs = st.builds(
    MixedJob,
    hours=st.floats(0.1, 1000),
    spot_share=shares,
    failures=st.integers(0, 100),
    hours_per_failure=st.floats(0, 10),
    spot_price=prices,
)


def test_the_worked_example_costs_what_the_source_says_and_what_its_other_equation_gives():
    assert WORKED_EXAMPLE.cost.spread == pytest.approx(2.76)
    assert WORKED_EXAMPLE.cost.on_demand == pytest.approx(3.3)
    assert WORKED_EXAMPLE.saving.spread == pytest.approx(0.448)
    assert WORKED_EXAMPLE.saving.on_demand == pytest.approx(0.34)


def test_the_table_is_right_but_for_its_last_row():
    wrong = [row for row in table() if not row.is_right]
    assert [row.spot_share for row in table()] == list(PRINTED)
    assert [row.spot_share for row in wrong] == [0.6]
    assert "total" in wrong[0].remark, "the remark says what was printed instead"


@pytest.mark.parametrize(
    ("share", "spread", "on_demand"),
    [(0.3, 0.37, 0.27), (0.4, 0.5625, 0.36), (0.5, 0.818, 0.45), (0.6, 1.174, 0.54)],
)
def test_a_job_may_take_so_much_longer(share: float, spread: float, on_demand: float):
    tolerated = tolerated_extension(share)
    assert tolerated.spread == pytest.approx(spread, abs=0.001)
    assert tolerated.on_demand == pytest.approx(on_demand)


@given(jobs)
def test_the_cost_with_the_added_hours_spread_is_never_above_the_one_with_all_of_them_on_demand(
    job: MixedJob,
):
    assert job.cost.spread <= job.cost.on_demand + 1e-9


@given(jobs)
def test_a_job_without_failures_has_one_cost(job: MixedJob):
    undisturbed = MixedJob(
        hours=job.hours, spot_share=job.spot_share, failures=0, hours_per_failure=1, spot_price=job.spot_price
    )
    assert undisturbed.cost.spread == pytest.approx(undisturbed.cost.on_demand)


@given(shares, prices, st.floats(1, 100))
def test_a_job_that_is_extended_by_what_is_tolerated_costs_what_on_demand_does(
    share: float, price: float, hours: float
):
    tolerated = tolerated_extension(share, price)
    job = MixedJob(
        hours=hours,
        spot_share=share,
        failures=1,
        hours_per_failure=hours * tolerated.spread,
        spot_price=price,
    )
    assert job.cost.spread == pytest.approx(hours)
    billed = MixedJob(
        hours=hours,
        spot_share=share,
        failures=1,
        hours_per_failure=hours * tolerated.on_demand,
        spot_price=price,
    )
    assert billed.cost.on_demand == pytest.approx(hours)


@given(jobs.filter(lambda job: job.hours_per_failure > 0.01))
def test_breaking_even_saves_nothing(job: MixedJob):
    at = MixedJob(
        hours=job.hours,
        spot_share=job.spot_share,
        failures=job.failures_to_break_even.spread,
        hours_per_failure=job.hours_per_failure,
        spot_price=job.spot_price,
    )
    assert at.saving.spread == pytest.approx(0, abs=1e-6)


def test_failures_that_add_nothing_never_use_up_the_discount():
    job = MixedJob(hours=5, spot_share=0.5, failures=3, hours_per_failure=0)
    assert math.isinf(job.failures_to_break_even.spread)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hours", 0.0),
        ("hours", math.inf),
        ("spot_share", 1.1),
        ("spot_share", -0.1),
        ("failures", -1.0),
        ("hours_per_failure", -0.1),
        ("spot_price", 0.0),
        ("spot_price", math.nan),
    ],
)
def test_a_number_that_cannot_be_is_refused_by_name(field: str, value: float):
    numbers = {"hours": 5.0, "spot_share": 0.5, "failures": 1.0, "hours_per_failure": 0.2, "spot_price": 0.3}
    with pytest.raises(ValueError, match=f"^{field}: got {value}; allowed: "):
        MixedJob(**{**numbers, field: value})


rates = st.floats(0, 5)
all_rates = st.builds(
    PoolRates, price=st.floats(0.05, 1.5), evictions_per_hour=rates, hours_per_eviction=st.floats(0, 2)
)


def pool_rates(**changed: float) -> PoolRates:
    return PoolRates(**{"price": 0.32, "evictions_per_hour": 0.1, "hours_per_eviction": 0.2, **changed})


@pytest.mark.parametrize(("mean", "quantile"), [(0, 0), (0.05, 0), (1, 3), (4.8, 9), (10, 15), (800, 847)])
def test_95_of_100_counts_are_at_most_the_quantile(mean: float, quantile: int):
    assert poisson_quantile(mean, 0.95) == quantile


def test_a_quantile_of_a_great_mean_joins_the_one_that_is_summed():
    summed, approximated = poisson_quantile(99_999, 0.95), poisson_quantile(100_001, 0.95)
    assert abs(approximated - summed - 2) <= 2


def test_the_smallest_bound_caps_the_advice():
    advice = advise(pool_rates(), hours=48)
    assert advice.by_luck == 9
    assert advice.max_failures == 10
    advice = advise(pool_rates(), hours=48, slack_hours=1.05)
    assert advice.max_failures == 5
    assert "deadline" in advice.reason
    advice = advise(pool_rates(price=0.8, hours_per_eviction=1.0, evictions_per_hour=0.2), hours=20)
    assert advice.max_failures == 5
    assert "on-demand" in advice.reason
    advice = advise(pool_rates(evictions_per_hour=20), hours=10)
    assert advice.max_failures == 0
    assert "leave this pool out" in advice.reason


@given(all_rates, st.floats(1, 200), st.floats(0, 100))
def test_the_advice_never_exceeds_its_own_bounds(given_rates: PoolRates, hours: float, slack: float):
    advice = advise(given_rates, hours=hours, slack_hours=slack)
    assert 0 <= advice.max_failures <= min(advice.by_luck + 1, advice.by_money, advice.by_time)


@given(all_rates, st.floats(1, 200), st.floats(0, 10), st.floats(0, 10))
def test_more_time_never_lowers_it(given_rates: PoolRates, hours: float, slack: float, more: float):
    short, long = (advise(given_rates, hours=hours, slack_hours=time) for time in (slack, slack + more))
    assert short.max_failures <= long.max_failures


@pytest.mark.parametrize(("hours", "slack", "field"), [(0.0, None, "hours"), (1.0, -1.0, "slack_hours")])
def test_times_that_cannot_be_are_refused_by_name(hours: float, slack: float | None, field: str):
    with pytest.raises(ValueError, match=f"^{field}: got"):
        advise(pool_rates(), hours=hours, slack_hours=slack)


@given(all_rates)
def test_rates_pay_just_below_their_break_even_rate(given_rates: PoolRates):
    rate = given_rates.break_even_evictions_per_hour
    assume(0 < rate < math.inf)
    below = pool_rates(
        price=given_rates.price,
        hours_per_eviction=given_rates.hours_per_eviction,
        evictions_per_hour=rate * 0.999,
    )
    above = pool_rates(
        price=given_rates.price,
        hours_per_eviction=given_rates.hours_per_eviction,
        evictions_per_hour=rate * 1.001,
    )
    assert below.pays
    assert not above.pays


def test_a_tier_dearer_than_one_below_it_is_left_out():
    ladder = [
        PricedTier(pool="h100-spot", rates=pool_rates(price=0.9, evictions_per_hour=1)),
        PricedTier(pool="a100-spot", rates=pool_rates()),
        PricedTier(pool="a100", rates=PoolRates(price=1)),
    ]
    first, second, last = compare_tiers(ladder)
    assert not first.is_worth_it
    assert first.cheapest_below is ladder[1]
    assert second.is_worth_it
    assert last.is_worth_it


@given(st.lists(all_rates, min_size=2, max_size=5))
def test_at_the_rate_a_tier_is_given_it_costs_what_the_cheapest_below_does(given_rates: list[PoolRates]):
    verdict = compare_tiers(
        [PricedTier(pool=str(place), rates=each) for place, each in enumerate(given_rates)]
    )[0]
    assume(verdict.cheapest_below is not None and math.isfinite(verdict.evictions_left))
    here = verdict.tier.rates
    rate = here.evictions_per_hour + verdict.evictions_left
    assume(rate >= 0)
    at_the_limit = pool_rates(
        price=here.price, hours_per_eviction=here.hours_per_eviction, evictions_per_hour=rate
    )
    assert verdict.cheapest_below is not None
    assert at_the_limit.cost_per_useful_hour == pytest.approx(
        verdict.cheapest_below.rates.cost_per_useful_hour
    )


def checkpoints(**changed: float) -> Checkpointing:
    numbers = {"size_gib": 100.0, "gib_per_second": 10.0, "notice_seconds": 25.0, "evictions_per_hour": 0.1}
    return Checkpointing(**{**numbers, **changed})


def test_checkpoints_need_a_schedule_for_losses_that_the_notice_does_not_cover():
    assert checkpoints().fits_in_notice
    assert math.isinf(checkpoints().interval_seconds)
    assert checkpoints(losses_without_notice_per_hour=0.05).interval_seconds == pytest.approx(1200)
    late = checkpoints(notice_seconds=8.0)
    assert not late.fits_in_notice
    assert late.interval_seconds == pytest.approx(math.sqrt(2 * 10 * 36000))


@given(st.floats(1, 500), st.floats(0.1, 20), st.floats(0.001, 1), st.floats(0.5, 2))
def test_no_other_interval_loses_less_time(size: float, speed: float, rate: float, factor: float):
    job = checkpoints(size_gib=size, gib_per_second=speed, notice_seconds=0.0, evictions_per_hour=rate)
    other = job.interval_seconds * factor
    lost = job.write_seconds / other + rate * other / 2 / 3600
    assert job.overhead <= lost + 1e-12


@pytest.mark.parametrize("field", ["size_gib", "gib_per_second", "notice_seconds", "evictions_per_hour"])
def test_a_negative_number_is_refused_by_name(field: str):
    with pytest.raises(ValueError, match=f"^{field}: got -1.0"):
        checkpoints(**{field: -1.0})


def test_checkpoints_that_are_written_at_no_speed_are_refused():
    with pytest.raises(ValueError, match=r"^gib_per_second: got 0"):
        checkpoints(gib_per_second=0.0)


@pytest.mark.parametrize("field", ["price", "evictions_per_hour", "hours_per_eviction"])
def test_rates_with_a_negative_number_are_refused_by_name(field: str):
    with pytest.raises(ValueError, match=f"^{field}: got -1.0"):
        pool_rates(**{field: -1.0})
