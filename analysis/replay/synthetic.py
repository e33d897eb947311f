"""Traces made from a seed: for tests, and for trying a replay out before there is one of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random

from holdfast.analysis.replay.trace import Trace
from holdfast.analysis.replay.trace_file import MOST_INSTANCES, MOST_TICKS

_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Weather:
    """What a made market is like: all instances for a while, then too few for a while, and so on.

    `instances`: how many there are at most. `there`, `gone`: how long both last in the mean, exponentially
    distributed. `gap`: between two ticks. `length`: of the whole trace.

    Raises ValueError, naming the field, for what makes no trace.
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


def synthetic_trace(weather: Weather, seed: int) -> Trace:
    """Make a trace; the same seed makes the same one. What is left of a gang's instances while they are gone varies."""
    random = Random(seed)  # noqa: S311 - a market, no secret
    data: list[int] = []
    ticks = weather.length // weather.gap
    # It begins somewhere in the middle of either, as a recording does.
    is_there = random.random() < weather.there / (weather.there + weather.gone)
    while len(data) < ticks:
        mean = weather.there if is_there else weather.gone
        number = weather.instances if is_there else random.randrange(weather.instances)
        stretch = max(1, round(random.expovariate(1.0) * (mean / weather.gap)))
        data += [number] * min(stretch, ticks - len(data))
        is_there = not is_there
    return Trace(gap=weather.gap, data=tuple(data))
