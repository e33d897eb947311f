"""The annotation's text: `write_state`, and `read_state`, which has an answer for any text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from holdfast.fallback.state_machine.state import (
    JobState,
    OutageKind,
    Phase,
    Purpose,
    ReturnAttempt,
    ReturnStage,
    UnreadableState,
)

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json, JsonValue

# Outside of these a time is no time of ours, and sums with it would overflow.
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
_MOST: Final = 2**31
_LONGEST_TEXT: Final = 253

_Reader: TypeAlias = Callable[["JsonValue"], object]


def write_state(state: JobState) -> str:
    """Return the state as the annotation holds it: compact JSON, times in UTC, what is as it began left out."""
    written = {
        each.name: _written(getattr(state, each.name))
        for each in fields(state)
        if each.default is MISSING or getattr(state, each.name) != each.default
    }
    return json.dumps(written, separators=(",", ":"))


def read_state(text: str | None) -> JobState | UnreadableState | None:
    """Read an annotation; None where there is none. Fields that are not known are left out of account."""
    if text is None:
        return None
    try:
        document = cast("JsonValue", json.loads(text))
        return _state(_object(document))
    except (ValueError, RecursionError) as error:
        return UnreadableState(problem=str(error) or "nested too deeply")


def _state(document: Json) -> JobState:
    read: dict[str, object] = {}
    for each in fields(JobState):
        if each.name in document:
            read[each.name] = _field(each.name, _READERS[each.name], document[each.name])
        elif each.default is MISSING:
            raise ValueError(f"{each.name} is not there")
    return JobState(**read)  # type: ignore[arg-type]  # every value came from the reader of its own field


def _field(name: str, reader: _Reader, value: JsonValue) -> object:
    try:
        return reader(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _written(value: object) -> JsonValue:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, ReturnAttempt):
        return {each.name: _written(getattr(value, each.name)) for each in fields(value)}
    return cast("JsonValue", value)


def _object(value: JsonValue) -> Json:
    if not isinstance(value, Mapping):
        raise ValueError("it is no JSON object")  # noqa: TRY004  # one kind of error for a text that is no state
    return value


def _time(value: JsonValue) -> datetime:
    if not isinstance(value, str):
        raise ValueError("it is no time")  # noqa: TRY004  # as above: one kind of error
    time = datetime.fromisoformat(value)
    if time.tzinfo is None or not _EARLIEST <= time <= _LATEST:
        raise ValueError(f"{value} is no time between {_EARLIEST:%Y} and {_LATEST:%Y} with its zone")
    return time


def _seconds(value: JsonValue) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        raise ValueError("it is no number of seconds")
    return timedelta(seconds=value)


def _count(value: JsonValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError("it is no count")
    return value


def _flag(value: JsonValue) -> bool:
    if not isinstance(value, bool):
        raise ValueError("it is neither true nor false")  # noqa: TRY004  # as above: one kind of error
    return value


def _text(value: JsonValue) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise ValueError(f"it is no text of at most {_LONGEST_TEXT} characters")
    return value


def _absent_or(reader: _Reader) -> _Reader:
    return lambda value: None if value is None else reader(value)


def _attempt(value: JsonValue) -> ReturnAttempt:
    document = _object(value)
    return ReturnAttempt(
        pool=_text(document.get("pool")),
        stage=ReturnStage(_text(document.get("stage"))),
        since=_time(document.get("since")),
        asked_at=None if document.get("asked_at") is None else _time(document.get("asked_at")),
    )


_READERS: Final[Mapping[str, _Reader]] = {
    "uid": _text,
    "phase": lambda value: Phase(_text(value)),
    "pool": _text,
    "rank": _count,
    "since": _time,
    "waiting_since": _absent_or(_time),
    "waited": _seconds,
    "evictions": _count,
    "application_failures": _count,
    "unexplained": _count,
    "outage_kind": _absent_or(lambda value: OutageKind(_text(value))),
    "outage_at": _absent_or(_time),
    "outage_seen_at": _absent_or(_time),
    "outage_born": _absent_or(_time),
    "eviction_at": _absent_or(_time),
    "losses_until": _absent_or(_time),
    "restarts": _count,
    "disrupted_restarts": _count,
    "restart_due": _flag,
    "resumed_at": _absent_or(_time),
    "head_restarts": _count,
    "purpose": _absent_or(lambda value: Purpose(_text(value))),
    "suspended_at": _absent_or(_time),
    "resume_at": _absent_or(_time),
    "moves": _count,
    "yields": _count,
    "reasserted": _count,
    "returning": _absent_or(_attempt),
    "tried_return_at": _absent_or(_time),
    "bounces": _count,
    "returned": _flag,
    "recreated": _count,
}
