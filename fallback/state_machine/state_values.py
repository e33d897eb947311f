"""Reads the values of a state annotation. Each reader returns the value, or raises ValueError with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json, JsonValue

# A time outside of these is invalid, and sums with it would overflow.
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
_MOST: Final = 2**31
_MOST_NODE_SECONDS: Final = 2.0**40
_MOST_COST: Final = 1e15
_LONGEST_TEXT: Final = 253


def read_object(value: JsonValue) -> Json:
    """Return a JSON object."""
    if not isinstance(value, Mapping):
        raise ValueError("it is not a JSON object")  # noqa: TRY004  # one kind of error for every invalid text
    return value


def read_time(value: JsonValue) -> datetime:
    """Return a time with its zone."""
    if not isinstance(value, str):
        raise ValueError("it is not a time")  # noqa: TRY004  # as above: one kind of error
    time = datetime.fromisoformat(value)
    if time.tzinfo is None or not _EARLIEST <= time <= _LATEST:
        raise ValueError(f"{value} is not a time between {_EARLIEST:%Y} and {_LATEST:%Y} with a time zone")
    return time


def _number(value: JsonValue, most: float, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < most:
        raise ValueError(f"it is not {what}")
    return value


def read_seconds(value: JsonValue) -> timedelta:
    """Return a duration, which is written in seconds."""
    return timedelta(seconds=_number(value, _MOST, "a number of seconds"))


def read_node_seconds(value: JsonValue) -> timedelta:
    """Return a duration that is added up over nodes, so that it may be longer."""
    return timedelta(seconds=_number(value, _MOST_NODE_SECONDS, "a number of seconds"))


def read_cost(value: JsonValue) -> float | None:
    """Return an amount of money; None if it is not known."""
    return None if value is None else float(_number(value, _MOST_COST, "an amount of money"))


def read_count(value: JsonValue) -> int:
    """Return a count."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError("it is not a count")
    return value


def read_flag(value: JsonValue) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise ValueError("it is neither true nor false")  # noqa: TRY004  # as above: one kind of error
    return value


def read_text(value: JsonValue) -> str:
    """Return a short text."""
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise ValueError(f"it is not a text of at most {_LONGEST_TEXT} characters")
    return value


def read_list(value: JsonValue, *, most: int | None = None) -> list[JsonValue]:
    """Return a list, of at most so many values."""
    if not isinstance(value, list):
        raise ValueError("it is not a list")  # noqa: TRY004  # as above: one kind of error
    if most is not None and len(value) > most:
        raise ValueError(f"it has more than {most} values")
    return value


def read_share(value: JsonValue) -> float:
    """Return a share from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("it is not a share from 0 to 1")
    return float(value)
