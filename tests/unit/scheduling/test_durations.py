"""Durations as users write them."""

import contextlib
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.quantities import LONGEST_DURATION, DurationError, format_duration, parse_duration

durations = st.integers(min_value=1, max_value=int(LONGEST_DURATION.total_seconds())).map(
    lambda seconds: timedelta(seconds=seconds)
)


@given(durations)
def test_a_written_duration_reads_as_itself(duration: timedelta) -> None:
    text = format_duration(duration)
    assert parse_duration(text) == duration, f"{text} must read as what it was written from"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45s", 45), ("15m", 900), ("90m", 5400), ("1h30m", 5400), ("1h30m15s", 5415), ("720h", 2592000)],
)
def test_hours_minutes_and_seconds_add_up(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds), f"{text} is {seconds} seconds"


@pytest.mark.parametrize("text", ["15", "0", "1500"])
def test_a_number_without_a_unit_is_refused_with_the_three_it_could_mean(text: str) -> None:
    with pytest.raises(DurationError) as refused:
        parse_duration(text)
    assert refused.value.fix == f"Write {text}m, {text}s or {text}h.", (
        "only the author knows which unit was meant, so all are offered"
    )


@pytest.mark.parametrize(
    "text",
    ["", " ", "m", "15 m", "-15m", "1.5h", "15M", "30m1h", "1h1h", "1d", "15m ", "15m\n", "١٥m", "15min"],
)
def test_what_only_resembles_a_duration_is_refused(text: str) -> None:
    with pytest.raises(DurationError) as refused:
        parse_duration(text)
    assert "1h30m" in refused.value.fix, "the refusal shows the form"


@pytest.mark.parametrize("text", ["0s", "0h0m0s", "721h", "999999h", "43201m"])
def test_nothing_and_more_than_a_month_are_refused(text: str) -> None:
    with pytest.raises(DurationError) as refused:
        parse_duration(text)
    assert refused.value.fix in {"Write at least 1s.", "Write at most 720h."}, (
        "the refusal says which end was passed"
    )


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_and_nothing_else_happens(text: str) -> None:
    duration = LONGEST_DURATION
    with contextlib.suppress(DurationError):
        duration = parse_duration(text)
    assert timedelta(0) < duration <= LONGEST_DURATION, (
        f"{text!r} was read as {duration}, outside what is allowed"
    )
