"""How far the clock on the wall was set, told apart from time that passes."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from holdfast.fallback.reconciler.observer import ClockJumps

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ZERO = timedelta(0)


@given(st.lists(st.floats(0, 100_000)))
def test_time_that_passes_is_no_jump(passing: list[float]) -> None:
    clocks, going = ClockJumps[str](), 0.0
    for seconds in passing:
        going += seconds
        jump = clocks.jump("a", NOON + timedelta(seconds=going), going)
        assert jump == ZERO, f"both clocks went on by {seconds} s"


def test_a_clock_that_is_set_is_told_until_it_is_accounted_for() -> None:
    clocks = ClockJumps[str]()
    hour = timedelta(hours=1)
    assert clocks.jump("a", NOON, 0) == ZERO, "nothing is known at first"
    assert clocks.jump("a", NOON + hour, 1) == hour - timedelta(seconds=1), "it was set forward"
    assert clocks.jump("a", NOON + hour, 1) == hour - timedelta(seconds=1), (
        "a write that failed changed nothing"
    )
    clocks.settle("a", NOON + hour, 1)
    assert clocks.jump("a", NOON + hour + timedelta(seconds=9), 10) == ZERO, "it was accounted for"
    assert clocks.jump("a", NOON, 11) < -timedelta(minutes=59), "and set back again"


def test_a_clock_that_is_steered_adds_up() -> None:
    clocks = ClockJumps[str]()
    clocks.jump("a", NOON, 0)
    assert clocks.jump("a", NOON + timedelta(seconds=13), 10) == ZERO, "three seconds are nothing"
    assert clocks.jump("a", NOON + timedelta(seconds=26), 20) == timedelta(seconds=6), "six are something"


def test_each_job_has_an_account_of_its_own() -> None:
    clocks = ClockJumps[str]()
    clocks.jump("a", NOON, 0)
    assert clocks.jump("b", NOON + timedelta(hours=1), 1) == ZERO, "it is looked at for the first time"
    clocks.forget("a")
    assert clocks.jump("a", NOON + timedelta(hours=2), 2) == ZERO, "and so is one made again under its name"
