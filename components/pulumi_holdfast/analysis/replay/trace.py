"""Availability traces: the capacity of a pool at regular times, and its price, from a file or made from a seed."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from itertools import groupby
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pulumi_holdfast.ladder.json import Json, JsonValue

_HOUR = timedelta(hours=1)

_Value = TypeVar("_Value", int, float)


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The number of available instances: `data[i]` from `i * gap` until `(i + 1) * gap`.

    `prices`: of an instance at these times, in any currency per hour; empty if they are not known.
    """

    gap: timedelta
    data: tuple[int, ...]
    prices: tuple[float, ...] = ()

    @property
    def length(self) -> timedelta:
        """The time it covers."""
        return self.gap * len(self.data)

    @property
    def most(self) -> int:
        """The largest number of available instances."""
        return max(self.data)

    @cached_property
    def changes(self) -> tuple[tuple[int, int], ...]:
        """The ticks at which the number changes, including the first, with the new number."""
        return _changes(self.data)

    @cached_property
    def price_changes(self) -> tuple[tuple[int, float], ...]:
        """The ticks at which the price changes, including the first, with the new price."""
        return _changes(self.prices)

    def steps(self, nodes: int, length: timedelta) -> list[tuple[timedelta, int]]:
        """Return the times at which the number changes within a length, with the new number; numbers are capped at `nodes`."""
        steps: list[tuple[timedelta, int]] = []
        for tick, number in self.changes:
            at, room = self.gap * tick, min(number, nodes)
            if at < length and not (steps and steps[-1][1] == room):
                steps.append((at, room))
        return steps

    def relative_to(self, on_demand_price: float | None) -> Trace:
        """Return the trace with its prices as shares of on-demand's, and without prices if that one is not known."""
        shares = () if on_demand_price is None else tuple(price / on_demand_price for price in self.prices)
        return replace(self, prices=shares)

    def price_steps(self, length: timedelta) -> list[tuple[timedelta, float]]:
        """Return the times at which the price changes within a length, with the new price."""
        return [(at, price) for tick, price in self.price_changes if (at := self.gap * tick) < length]


def _changes(values: Sequence[_Value]) -> tuple[tuple[int, _Value], ...]:
    ticks = range(len(values))
    return tuple((at, values[at]) for at in ticks if at == 0 or values[at] != values[at - 1])


@dataclass(frozen=True, kw_only=True)
class Rates:
    """The evictions and waits of a gang in a trace.

    `share`: of the time in which it has all of its instances. `evictions_per_hour`: how often an hour with them is
    interrupted. `mean_wait_hours`, `longest_wait_hours`: until it has them again.
    """

    share: float
    evictions_per_hour: float
    mean_wait_hours: float
    longest_wait_hours: float


def rates(trace: Trace, nodes: int) -> Rates:
    """Return the evictions and waits of a gang of `nodes` in a trace."""
    stretches = list(_stretches(trace, nodes))
    there = [hours for fits, hours in stretches if fits]
    gone = [hours for fits, hours in stretches if not fits]
    evictions = sum(1 for place, (fits, _) in enumerate(stretches) if place and not fits)
    return Rates(
        share=sum(there) / (trace.length / _HOUR),
        evictions_per_hour=evictions / sum(there) if there else 0.0,
        mean_wait_hours=sum(gone) / len(gone) if gone else 0.0,
        longest_wait_hours=max(gone, default=0.0),
    )


def _stretches(trace: Trace, nodes: int) -> Iterator[tuple[bool, float]]:
    for fits, ticks in groupby(number >= nodes for number in trace.data):
        yield fits, sum(1 for _ in ticks) * trace.gap / _HOUR


# A year at one tick a minute is half a million; what is larger is no trace.
MOST_TICKS: Final = 2_000_000
MOST_INSTANCES: Final = 1_000_000
_MOST_PRICE: Final = 1e9
_MOST_BYTES: Final = 32 * 2**20

_SHORTEST_GAP: Final = 1.0
_LONGEST_GAP: Final = 86_400.0
_FORM: Final = '{"metadata": {"gap_seconds": 300}, "data": [4, 4, 3]}'
_PRICES_FORM: Final = '{"metadata": {"gap_seconds": 300}, "data": [4, 3], "prices": [1.2, 1.3]}'


class TraceError(ValueError):
    """An invalid trace file: the file, what is wrong, and what is allowed."""


def read_trace(path: Path) -> Trace:
    """Read one pool's trace. Unknown keys are ignored. Raises TraceError and OSError."""
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
    document = {
        "metadata": {"gap_seconds": trace.gap.total_seconds()},
        "data": list(trace.data),
        **({"prices": list(trace.prices)} if trace.prices else {}),
    }
    path.write_text(json.dumps(document) + "\n", encoding="utf-8")


def _trace(document: JsonValue) -> Trace:
    if not isinstance(document, dict):
        raise TraceError(f"got {_kind(document)}; allowed: an object, such as {_FORM}")
    fields = cast("Json", document)
    data = _data(fields.get("data"))
    return Trace(gap=_gap(fields.get("metadata")), data=data, prices=_prices(fields.get("prices"), len(data)))


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


def _prices(prices: JsonValue, ticks: int) -> tuple[float, ...]:
    if prices is None:
        return ()
    if not isinstance(prices, list) or len(prices) != ticks:
        got = f"{len(prices)}" if isinstance(prices, list) else _kind(prices)
        raise TraceError(
            f"prices: got {got}; allowed: a list of as many prices as data has ticks, {ticks}, as in {_PRICES_FORM}"
        )
    return tuple(_price(price, place) for place, price in enumerate(prices))


def _price(price: JsonValue, place: int) -> float:
    is_number = isinstance(price, int | float) and not isinstance(price, bool)
    if not is_number or not 0 < cast("float", price) <= _MOST_PRICE:
        raise TraceError(
            f"prices[{place}]: got {_shown(price)}; allowed: a price per hour above 0, at most {_MOST_PRICE:g}"
        )
    return float(cast("float", price))


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


_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class SyntheticMarket:
    """The parameters of a synthetic trace: all instances for some time, then too few for some time, and so on.

    `instances`: the largest number. `there`, `gone`: the mean durations of both, exponentially distributed. `gap`: between
    two ticks. `length`: of the whole trace.

    Raises ValueError, naming the field, for an invalid value.
    """

    instances: int = 1
    there: timedelta = timedelta(hours=6)
    gone: timedelta = timedelta(hours=2)
    gap: timedelta = timedelta(minutes=5)
    length: timedelta = 60 * _DAY

    def __post_init__(self) -> None:
        if not 1 <= self.instances <= MOST_INSTANCES:
            raise ValueError(f"instances: got {self.instances}; allowed: 1 to {MOST_INSTANCES}")
        for field, value in (("there", self.there), ("gone", self.gone), ("gap", self.gap)):
            if value <= timedelta(0):
                raise ValueError(f"{field}: got {value}; allowed: more than 0")
        if not self.gap <= self.length <= MOST_TICKS * self.gap:
            raise ValueError(f"length: got {self.length}; allowed: 1 to {MOST_TICKS} gaps of {self.gap}")


def synthetic_trace(weather: SyntheticMarket, seed: int) -> Trace:
    """Make a trace; the same seed makes the same one. The number of instances varies while there are too few."""
    random = Random(seed)  # noqa: S311 - a simulation, not a secret
    data: list[int] = []
    ticks = weather.length // weather.gap
    # It begins in the middle of either state, as a recording does.
    is_there = random.random() < weather.there / (weather.there + weather.gone)
    while len(data) < ticks:
        mean = weather.there if is_there else weather.gone
        number = weather.instances if is_there else random.randrange(weather.instances)
        stretch = max(1, round(random.expovariate(1.0) * (mean / weather.gap)))
        data += [number] * min(stretch, ticks - len(data))
        is_there = not is_there
    return Trace(gap=weather.gap, data=tuple(data))
