"""Windows of reserved capacity, and times as manifests spell them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.windows import ALWAYS, CapacityWindow, format_time, parse_time

T0 = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
DAY = timedelta(days=1)
WEEK = CapacityWindow(begins=T0, ends=T0 + 7 * DAY)


@pytest.mark.parametrize(
    ("at", "is_open", "next_change"),
    [(T0 - DAY, False, T0), (T0, True, T0 + 7 * DAY), (T0 + 7 * DAY, False, None)],
)
def test_a_window_is_open_from_its_beginning_to_its_end(
    at: datetime, is_open: bool, next_change: datetime | None
) -> None:
    assert WEEK.is_open(at) is is_open
    assert WEEK.changes_at(at) == next_change


def test_a_window_without_limits_is_always_open() -> None:
    assert ALWAYS.is_open_for(1000 * DAY, T0)
    assert ALWAYS.changes_at(T0) is None


def test_a_window_is_open_for_a_time_only_if_it_ends_later() -> None:
    assert WEEK.is_open_for(6 * DAY, T0)
    assert not WEEK.is_open_for(7 * DAY, T0)
    assert not WEEK.is_open_for(DAY, T0 - timedelta(seconds=1))


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(9999, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - bounds
def test_a_formatted_time_is_parsed_to_the_same_second(time: datetime) -> None:
    assert parse_time(format_time(time)) == time.replace(microsecond=0)


@pytest.mark.parametrize(
    "text", ["", "2026-12-01", "2026-12-01T11:30:00", "2026-12-01T11:30:00+01:00", "2026-13-01T11:30:00Z"]
)
def test_another_text_is_no_time(text: str) -> None:
    assert parse_time(text) is None
