import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.analysis.economics.cost_model import (
    PRINTED,
    WORKED_EXAMPLE,
    MixedJob,
    table,
    tolerated_extension,
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
    assert WORKED_EXAMPLE.cost.spread == pytest.approx(2.76), "the source's clean expression"
    assert WORKED_EXAMPLE.cost.on_demand == pytest.approx(3.3), "its decomposition, all added hours on-demand"
    assert WORKED_EXAMPLE.saving.spread == pytest.approx(0.448), "44.8 % in the source"
    assert WORKED_EXAMPLE.saving.on_demand == pytest.approx(0.34), "the other end of the range"


def test_the_table_is_right_but_for_its_last_row():
    wrong = [row for row in table() if not row.is_right]
    assert [row.spot_share for row in table()] == list(PRINTED), "every row of the source is judged"
    assert [row.spot_share for row in wrong] == [0.6], "217 % is the only value no equation gives"
    assert "total" in wrong[0].remark, "the remark says what was printed instead"


@pytest.mark.parametrize(
    ("share", "spread", "on_demand"),
    [(0.3, 0.37, 0.27), (0.4, 0.5625, 0.36), (0.5, 0.818, 0.45), (0.6, 1.174, 0.54)],
)
def test_a_job_may_take_so_much_longer(share: float, spread: float, on_demand: float):
    tolerated = tolerated_extension(share)
    assert tolerated.spread == pytest.approx(spread, abs=0.001), "1 / (1 - 0.9 α) - 1"
    assert tolerated.on_demand == pytest.approx(on_demand), "0.9 α"


@given(jobs)
def test_the_cost_with_the_added_hours_spread_is_never_above_the_one_with_all_of_them_on_demand(
    job: MixedJob,
):
    assert job.cost.spread <= job.cost.on_demand + 1e-9, "spot never costs more than on-demand here"


@given(jobs)
def test_a_job_without_failures_has_one_cost(job: MixedJob):
    undisturbed = MixedJob(
        hours=job.hours, spot_share=job.spot_share, failures=0, hours_per_failure=1, spot_price=job.spot_price
    )
    assert undisturbed.cost.spread == pytest.approx(undisturbed.cost.on_demand), (
        "nothing was added to be billed"
    )


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
    assert job.cost.spread == pytest.approx(hours), "break-even is where both cost the same"
    billed = MixedJob(
        hours=hours,
        spot_share=share,
        failures=1,
        hours_per_failure=hours * tolerated.on_demand,
        spot_price=price,
    )
    assert billed.cost.on_demand == pytest.approx(hours), "and so with the other equation"


@given(jobs.filter(lambda job: job.hours_per_failure > 0.01))
def test_breaking_even_saves_nothing(job: MixedJob):
    at = MixedJob(
        hours=job.hours,
        spot_share=job.spot_share,
        failures=job.failures_to_break_even.spread,
        hours_per_failure=job.hours_per_failure,
        spot_price=job.spot_price,
    )
    assert at.saving.spread == pytest.approx(0, abs=1e-6), "that many failures use up the discount"


def test_failures_that_add_nothing_never_use_up_the_discount():
    job = MixedJob(hours=5, spot_share=0.5, failures=3, hours_per_failure=0)
    assert math.isinf(job.failures_to_break_even.spread), "no number of them costs anything"


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
