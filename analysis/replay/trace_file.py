"""Reading and writing trace files: `{"metadata": {"gap_seconds": 300}, "data": [4, 4, 3, …]}`."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import TYPE_CHECKING, Final, cast

from holdfast.analysis.replay.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.scheduling.json import Json, JsonValue

# A year at one tick a minute is half a million; what is larger is no trace.
MOST_TICKS: Final = 2_000_000
MOST_INSTANCES: Final = 1_000_000
_MOST_BYTES: Final = 32 * 2**20

_SHORTEST_GAP: Final = 1.0
_LONGEST_GAP: Final = 86_400.0
_FORM: Final = '{"metadata": {"gap_seconds": 300}, "data": [4, 4, 3]}'


class TraceError(ValueError):
    """A file that is no trace: which file, what is wrong with it, what it should be."""


def read_trace(path: Path) -> Trace:
    """Read one pool's trace. Keys that are not known are left out of account. Raises TraceError and OSError."""
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise TraceError(f"{path}: more than {_MOST_BYTES >> 20} MiB; allowed: a trace, such as {_FORM}")
    try:
        document = cast("JsonValue", json.loads(text))
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: no JSON ({error}); allowed: {_FORM}") from error
    try:
        return _trace(document)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace as a file that `read_trace` reads. Raises OSError."""
    document = {"metadata": {"gap_seconds": trace.gap.total_seconds()}, "data": list(trace.data)}
    path.write_text(json.dumps(document) + "\n", encoding="utf-8")


def _trace(document: JsonValue) -> Trace:
    if not isinstance(document, dict):
        raise TraceError(f"got {_kind(document)}; allowed: an object, such as {_FORM}")
    fields = cast("Json", document)
    return Trace(gap=_gap(fields.get("metadata")), data=_data(fields.get("data")))


def _gap(metadata: JsonValue) -> timedelta:
    if not isinstance(metadata, dict) or "gap_seconds" not in metadata:
        raise TraceError(f"metadata.gap_seconds: missing; allowed: seconds between two ticks, as in {_FORM}")
    gap = cast("Json", metadata)["gap_seconds"]
    is_number = isinstance(gap, int | float) and not isinstance(gap, bool)
    if not is_number or not _SHORTEST_GAP <= cast("float", gap) <= _LONGEST_GAP:
        raise TraceError(
            f"metadata.gap_seconds: got {_shown(gap)}; allowed: a number from {_SHORTEST_GAP:g} to {_LONGEST_GAP:g}"
        )
    return timedelta(seconds=cast("float", gap))


def _data(data: JsonValue) -> tuple[int, ...]:
    if not isinstance(data, list) or not data:
        got = "an empty list" if data == [] else _kind(data)
        raise TraceError(f"data: got {got}; allowed: a list of instances available per tick, as in {_FORM}")
    if len(data) > MOST_TICKS:
        raise TraceError(f"data: {len(data)} ticks; allowed: {MOST_TICKS} at most: cut it, or widen the gap")
    return tuple(_instances(tick, place) for place, tick in enumerate(data))


def _instances(tick: JsonValue, place: int) -> int:
    # Some recorders write 1.0 for 1.
    number = int(tick) if isinstance(tick, float) and math.isfinite(tick) and tick.is_integer() else tick
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MOST_INSTANCES:
        raise TraceError(
            f"data[{place}]: got {_shown(tick)}; allowed: a whole number of instances from 0 to {MOST_INSTANCES}"
        )
    return number


def _shown(value: JsonValue) -> str:
    if isinstance(value, dict | list):
        return _kind(value)
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "nothing"
        case dict():
            return "an object"
        case list():
            return "a list"
        case _:
            return _shown(value)
