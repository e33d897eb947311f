"""By how much the time of day was set since a job was last looked at."""

from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

K = TypeVar("K")

# Less than this is a clock that is being steered; it is kept until it adds up.
_NOTICED: Final = timedelta(seconds=5)
_NONE: Final = timedelta(0)


class Clocks(Generic[K]):
    """For each key, what both clocks showed when it was last settled: the time of day, and one that only goes on."""

    def __init__(self) -> None:
        self._settled: dict[K, tuple[datetime, float]] = {}

    def jump(self, key: K, now: datetime, going: float) -> timedelta:
        """Return how far the time of day has moved beyond the other clock (`going`, seconds); zero on the first look."""
        settled = self._settled.setdefault(key, (now, going))
        jump = (now - settled[0]) - timedelta(seconds=going - settled[1])
        return jump if abs(jump) >= _NOTICED else _NONE

    def settle(self, key: K, now: datetime, going: float) -> None:
        """Take a jump for accounted for: what is kept of the key was shifted by it."""
        self._settled[key] = (now, going)

    def forget(self, key: K) -> None:
        """Forget a key."""
        self._settled.pop(key, None)
