"""Reserved capacity: when it pays, and how a simulated job uses blocks that begin and end."""

from datetime import UTC, datetime, timedelta
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.analysis.economics.reserved_capacity import ReservedBlock, reserved_report
from pulumi_holdfast.analysis.simulation.job import JobPlan
from pulumi_holdfast.analysis.simulation.run import Simulation, Steps, simulate
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import DeclaredFacts, Policy, Tier
from pulumi_holdfast.ladder.windows import CapacityWindow

WEEK = 168.0
prices = st.floats(min_value=0.01, max_value=3)


def test_a_reservation_pays_from_its_break_even_use() -> None:
    assert ReservedBlock(price=0.6, hours=WEEK, used_hours=120).pays, "100.8 hours would have cost as much"
    assert not ReservedBlock(price=0.6, hours=WEEK, used_hours=100).pays
    on_spot = ReservedBlock(price=0.6, hours=WEEK, used_hours=WEEK, otherwise=0.4)
    assert not on_spot.pays
    assert "never" in reserved_report(on_spot)


@given(prices, st.floats(min_value=0.5, max_value=1), prices)
def test_a_used_hour_costs_less_than_elsewhere_exactly_if_the_reservation_pays(
    price: float, share: float, otherwise: float
) -> None:
    block = ReservedBlock(price=price, hours=WEEK, used_hours=share * WEEK, otherwise=otherwise)
    if abs(block.cost_per_useful_hour - otherwise) > 1e-9:
        assert block.pays is (block.cost_per_useful_hour < otherwise)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("price", {"price": 0.0}),
        ("hours", {"hours": 0.0}),
        ("used_hours", {"used_hours": 169.0}),
        ("otherwise", {"otherwise": float("nan")}),
    ],
)
def test_an_invalid_value_is_named(field: str, values: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"^{field}: got"):
        ReservedBlock(**{"price": 0.6, "hours": WEEK, "used_hours": 120.0, **values})


T0 = datetime(2026, 12, 1, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)
#: The first block is there for three hours, the second from the fifth hour on.
FIRST = CapacityWindow(ends=T0 + 3 * HOUR)
SECOND = CapacityWindow(begins=T0 + 5 * HOUR, ends=T0 + 40 * HOUR)


def tier(pool: str, capacity: CapacityType, window: CapacityWindow | None = None) -> Tier:
    facts = DeclaredFacts(capacity=capacity, window=window or CapacityWindow())
    return Tier(pool=pool, max_failures=3, procurement_timeout=HOUR / 4, facts=facts)


LADDER = Policy(
    tiers=(
        tier("block-1", CapacityType.RESERVED, FIRST),
        tier("block-2", CapacityType.RESERVED, SECOND),
        tier("spot", CapacityType.SPOT),
        Tier(pool="on-demand", facts=DeclaredFacts(capacity=CapacityType.ON_DEMAND)),
    ),
    return_after=12 * HOUR,
)


def run(work: timedelta) -> Simulation:
    """A job on four nodes. The cloud takes a block's machines back 45 minutes after jobs must have left."""
    taken_back = T0 + 3 * HOUR + 45 * HOUR / 60
    blocks = {"block-1": [(T0, 4), (taken_back, 0)], "block-2": [(T0 + 5 * HOUR, 4)]}
    plan = JobPlan(uid="job", created=T0, pool="block-1", pods=4, work=work)
    return simulate([plan], LADDER, Steps(pools=blocks), start=T0, until=T0 + 48 * HOUR)


def test_a_job_goes_from_a_block_that_ends_to_spot_and_to_the_next_block() -> None:
    done = run(20 * HOUR)
    pools = [pool for pool, _ in groupby(use.pool for use in done.uses if use.nodes == 4)]
    assert list(dict.fromkeys(pools)) == ["block-1", "spot", "block-2"]
    reasons = [str(event.report.reason) for event in done.events]
    assert "CapacityEnds" in reasons
    assert not [reason for reason in reasons if reason.endswith("Counted")]
    assert done.jobs[0].outcome is not None


def test_a_job_uses_a_block_only_in_its_window() -> None:
    for use in run(20 * HOUR).uses:
        if use.pool == "block-1":
            assert use.end <= T0 + 3 * HOUR + HOUR / 4
        if use.pool == "block-2":
            assert use.start >= T0 + 5 * HOUR
