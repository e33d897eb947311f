"""Writes the state of a job as the text of the annotation `fallback.holdfast.dev/state`, and reads it; and the marker of a suspension.

Every text has an answer: a user may edit the annotation, and another version of the controller may have written it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, TypeAlias, cast

from holdfast.fallback.policy.policy import home_pool
from holdfast.fallback.state_machine.refusal import LONGEST_REFUSAL
from holdfast.fallback.state_machine.state import (
    FailbackAttempt,
    FailbackStage,
    JobState,
    Ledger,
    OutageKind,
    Pace,
    Phase,
    PoolUse,
    Purpose,
    TimedFailure,
    UnreadableState,
)
from holdfast.scheduling.json import Json, JsonValue
from holdfast.scheduling.labels import CapacityType

_Reader: TypeAlias = Callable[[JsonValue], object]
# Sixteen tiers, and in each of their clusters as many again.
_MOST_USES: Final = 16 * 17
_OF_COPIES: Final = frozenset({"copy", "copied"})  # a job that was never away has none of them

# The first word of the marker is the version of its format.
_MARKER: Final = "v1"


def write_marker(state: JobState) -> str:
    """Return the text of the annotation SUSPENDED_FOR: empty while the controller does not suspend the job.

    The state's format may change with each version of the controller; this format never does. A version that cannot read
    the state, such as an older one after a rollback, still resumes what another version has suspended.
    """
    is_to_resume = state.suspended_by_us and state.phase not in {Phase.GIVEN_UP, Phase.REFUSED}
    # The template of a job that is in another cluster, or on its way there, selects the pool that it comes back to.
    return f"{_MARKER} {state.uid} {home_pool(state.pool)}" if is_to_resume else ""


def read_record(state: str | None, marker: str, uid: str) -> JobState | UnreadableState | None:
    """Read the annotations of the job with this uid: its state, or what its marker says when the state cannot be read."""
    read = read_state(state)
    if isinstance(read, JobState) or not marker:
        return read
    problem = "it is missing" if read is None else read.problem
    return UnreadableState(problem=problem, resume_on=_marked_pool(marker, uid))


def _marked_pool(marker: str, uid: str) -> str | None:
    version, *rest = marker.split(" ")
    if version != _MARKER:
        return ""
    # A manifest that is exported and applied again includes the annotations of the job before it.
    return rest[1] if len(rest) == 2 and rest[0] == uid else None


def write_state(state: JobState) -> str:
    """Return the annotation's text: compact JSON, times in UTC, without fields that have their default."""
    written = {
        each.name: _written(getattr(state, each.name))
        for each in fields(state)
        if each.default is MISSING or getattr(state, each.name) != each.default
    }
    return json.dumps(written, separators=(",", ":"))


# A job is reconciled several times between two writes of its state. Longer texts are not the controller's own: a user who
# writes many of them would fill the memory.
_MOST_CACHED: Final = 1024
_LONGEST_CACHED: Final = 4096


def read_state(text: str | None) -> JobState | UnreadableState | None:
    """Read an annotation; None if there is none. Unknown fields are ignored. Every text has an answer."""
    if text is None:
        return None
    return _read_short(text) if len(text) <= _LONGEST_CACHED else _read(text)


@lru_cache(maxsize=_MOST_CACHED)
def _read_short(text: str) -> JobState | UnreadableState:
    return _read(text)


def _read(text: str) -> JobState | UnreadableState:
    try:
        document = cast("JsonValue", json.loads(text))
        return _state(_read_object(document))
    except (ValueError, RecursionError) as error:
        return UnreadableState(problem=str(error) or "nested too deeply")


def _state(document: Json) -> JobState:
    read: dict[str, object] = {}
    for each in fields(JobState):
        if each.name in document:
            read[each.name] = _field(each.name, _READERS[each.name], document[each.name])
        elif each.default is MISSING:
            raise ValueError(f"{each.name} is missing")
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
    if isinstance(value, tuple):
        return [_written(each) for each in cast("tuple[object, ...]", value)]
    if isinstance(value, FailbackAttempt | Ledger | Pace | PoolUse | TimedFailure):
        named = {each.name: getattr(value, each.name) for each in fields(value)}
        return {name: _written(each) for name, each in named.items() if each or name not in _OF_COPIES}
    return cast("JsonValue", value)


# A time outside of these is invalid, and sums with it would overflow.
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
_MOST: Final = 2**31
_MOST_NODE_SECONDS: Final = 2.0**40
_MOST_COST: Final = 1e15
_LONGEST_TEXT: Final = 253


def _read_object(value: JsonValue) -> Json:
    """Return a JSON object."""
    if not isinstance(value, Mapping):
        raise ValueError("it is not a JSON object")  # noqa: TRY004  # one kind of error for every invalid text
    return value


def _read_time(value: JsonValue) -> datetime:
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


def _read_seconds(value: JsonValue) -> timedelta:
    """Return a duration, which is written in seconds."""
    return timedelta(seconds=_number(value, _MOST, "a number of seconds"))


def _read_node_seconds(value: JsonValue) -> timedelta:
    """Return a duration that is added up over nodes, so that it may be longer."""
    return timedelta(seconds=_number(value, _MOST_NODE_SECONDS, "a number of seconds"))


def _read_cost(value: JsonValue) -> float | None:
    """Return an amount of money; None if it is not known."""
    return None if value is None else float(_number(value, _MOST_COST, "an amount of money"))


def _read_count(value: JsonValue) -> int:
    """Return a count."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError("it is not a count")
    return value


def _read_flag(value: JsonValue) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise ValueError("it is neither true nor false")  # noqa: TRY004  # as above: one kind of error
    return value


def _read_refusal(value: JsonValue) -> str:
    """Return the text of a refusal."""
    if not isinstance(value, str) or len(value) > LONGEST_REFUSAL:
        raise ValueError(f"it is not a text of at most {LONGEST_REFUSAL} characters")
    return value


def _read_text(value: JsonValue) -> str:
    """Return a short text."""
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise ValueError(f"it is not a text of at most {_LONGEST_TEXT} characters")
    return value


def _read_list(value: JsonValue, *, most: int | None = None) -> list[JsonValue]:
    """Return a list, of at most so many values."""
    if not isinstance(value, list):
        raise ValueError("it is not a list")  # noqa: TRY004  # as above: one kind of error
    if most is not None and len(value) > most:
        raise ValueError(f"it has more than {most} values")
    return value


def _read_share(value: JsonValue) -> float:
    """Return a share from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("it is not a share from 0 to 1")
    return float(value)


def _absent_or(reader: _Reader) -> _Reader:
    return lambda value: None if value is None else reader(value)


def _attempt(value: JsonValue) -> FailbackAttempt:
    document = _read_object(value)
    return FailbackAttempt(
        pool=_read_text(document.get("pool")),
        stage=FailbackStage(_read_text(document.get("stage"))),
        since=_read_time(document.get("since")),
        requested_at=_absent_or(_read_time)(document.get("requested_at")),  # type: ignore[arg-type]  # as the reader returns it
    )


def _failures(value: JsonValue) -> tuple[TimedFailure, ...]:
    found = [_read_object(each) for each in _read_list(value)]
    return tuple(
        TimedFailure(kind=OutageKind(_read_text(each.get("kind"))), at=_read_time(each.get("at")))
        for each in found
    )


def _pace(value: JsonValue) -> Pace:
    document = _read_object(value)
    return Pace(
        work_done=_read_seconds(document.get("work_done")),
        counts_from=_absent_or(_read_time)(document.get("counts_from")),  # type: ignore[arg-type]  # as the reader returns it
        progress=_absent_or(_read_share)(document.get("progress")),  # type: ignore[arg-type]  # likewise
        interruptions=_read_count(document.get("interruptions")),
        is_late=_read_flag(document.get("is_late")),
    )


def _ledger(value: JsonValue) -> Ledger | None:
    # A ledger of another format costs the job its past figures, not its position.
    try:
        return None if value is None else _read_ledger(_read_object(value))
    except ValueError:
        return None


def _read_ledger(document: Json) -> Ledger:
    return Ledger(
        counted_from=_read_time(document.get("counted_from")),
        counted_until=_read_time(document.get("counted_until")),
        uses=tuple(_use(each) for each in _read_list(document.get("uses"), most=_MOST_USES)),
        worked=_read_seconds(document.get("worked")),
        lost=_read_seconds(document.get("lost")),
        waited=_read_seconds(document.get("waited")),
        starting=_read_seconds(document.get("starting")),
        gang_time=_read_node_seconds(document.get("gang_time")),
        copy=_read_text(document.get("copy", "")),
        copied=_ledger(document.get("copied")),
    )


def _use(value: JsonValue) -> PoolUse:
    document = _read_object(value)
    capacity = document.get("capacity")
    return PoolUse(
        pool=_read_text(document.get("pool")),
        capacity=None if capacity is None else CapacityType(_read_text(capacity)),
        node_time=_read_node_seconds(document.get("node_time")),
        ran=_read_seconds(document.get("ran")),
        cost=_read_cost(document.get("cost")),
    )


_READERS: Final[Mapping[str, _Reader]] = {
    "uid": _read_text,
    "phase": lambda value: Phase(_read_text(value)),
    "pool": _read_text,
    "rank": _read_count,
    "since": _read_time,
    "waiting_since": _absent_or(_read_time),
    "waited": _read_seconds,
    "evictions": _read_count,
    "application_failures": _read_count,
    "unexplained": _read_count,
    "failures": _failures,
    "outage_kind": _absent_or(lambda value: OutageKind(_read_text(value))),
    "outage_at": _absent_or(_read_time),
    "outage_counted_at": _absent_or(_read_time),
    "outage_pod_created_at": _absent_or(_read_time),
    "eviction_at": _absent_or(_read_time),
    "losses_counted_until": _absent_or(_read_time),
    "restarts": _read_count,
    "disrupted_restarts": _read_count,
    "restart_expected": _read_flag,
    "resumed_at": _absent_or(_read_time),
    "head_restarts": _read_count,
    "purpose": _absent_or(lambda value: Purpose(_read_text(value))),
    "suspended_at": _absent_or(_read_time),
    "operator_status": _read_text,
    "resume_at": _absent_or(_read_time),
    "moves": _read_count,
    "yields": _read_count,
    "resuspensions": _read_count,
    "failback": _absent_or(_attempt),
    "last_failback_at": _absent_or(_read_time),
    "short_failbacks": _read_count,
    "entered_by_failback": _read_flag,
    "recreations": _read_count,
    "refusal": _read_refusal,
    "pace": _absent_or(_pace),
    "ledger": _ledger,
}
