"""Which jobs are to be looked at: each once, however often it was asked for, and by one worker at a time."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Hashable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final, Generic, TypeVar

from holdfast.fallback.api.backoff import Backoff

K = TypeVar("K", bound=Hashable)

# Waits are for a time of day, and the clock that tells it may be set: it is read again at least this often.
_CLOCK_INTERVAL: Final = timedelta(seconds=5)

# A job whose look failed for no fault of the server's is tried again within minutes: what is wrong with it is likely
# to be wrong for longer.
_MOST_RETRY_SECONDS: Final = 60.0

# Times that were put off are kept until they come, or until there are this many of them.
_STALE: Final = 64


def utc_now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


class WorkQueue(Generic[K]):
    """Keys to be worked on. Used from one event loop.

    A key that is added while it is worked on comes once more after that. `run` must run for `add_at` to have an
    effect.
    """

    def __init__(self, *, now: Callable[[], datetime] = utc_now) -> None:
        self._now = now
        self._ready: deque[K] = deque()
        self._queued: set[K] = set()
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._timers: dict[K, datetime] = {}
        self._heap: list[tuple[datetime, int, K]] = []
        self._order = count()
        self._backoffs: dict[K, Backoff] = {}
        self._filled = asyncio.Event()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def planned(self) -> int:
        """How many times of day are kept, those that were put off since among them."""
        return len(self._heap)

    def add(self, key: K) -> None:
        """Have a key worked on as soon as a worker is free."""
        if key in self._working:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.append(key)
            self._filled.set()

    def add_at(self, key: K, at: datetime | None) -> None:
        """Have a key worked on at a time of day, in place of the one given before; None for never."""
        if at is None:
            self._timers.pop(key, None)
        elif self._timers.get(key) != at:
            self._timers[key] = at
            heapq.heappush(self._heap, (at, next(self._order), key))
            if len(self._heap) > 2 * len(self._timers) + _STALE:
                self._drop_stale()
            self._changed.set()

    def retry(self, key: K, asked_for: float | None = None) -> None:
        """Have a key worked on again after a failure, each time later, at the earliest in `asked_for` seconds."""
        backoff = self._backoffs.setdefault(key, Backoff(most=_MOST_RETRY_SECONDS))
        asyncio.get_running_loop().call_later(backoff.seconds(asked_for), self.add, key)

    def succeed(self, key: K) -> None:
        """Forget the failures of a key."""
        self._backoffs.pop(key, None)

    def forget(self, key: K) -> None:
        """Forget all that was planned for a key."""
        self._timers.pop(key, None)
        self._backoffs.pop(key, None)

    async def get(self) -> K:
        """Take the key that has waited longest; `done` must follow."""
        while not self._ready:
            self._filled.clear()
            await self._filled.wait()
        key = self._ready.popleft()
        self._queued.discard(key)
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        """Say that a key is not worked on any more."""
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    async def run(self) -> None:
        """Wake keys at their times until cancelled."""
        while True:
            self._changed.clear()
            self._add_due()
            wait = None
            if self._heap:
                wait = min(self._heap[0][0] - self._now(), _CLOCK_INTERVAL).total_seconds()
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _drop_stale(self) -> None:
        self._heap = [timer for timer in self._heap if self._timers.get(timer[2]) == timer[0]]
        heapq.heapify(self._heap)

    def _add_due(self) -> None:
        now = self._now()
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heapq.heappop(self._heap)
            if self._timers.get(key) == at:  # else it was put off, or is wanted no more
                del self._timers[key]
                self.add(key)
