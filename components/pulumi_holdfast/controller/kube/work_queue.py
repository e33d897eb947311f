"""The queue of jobs to reconcile: each key once, however often it is added, and by one worker at a time."""

import asyncio
import heapq
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from datetime import UTC, datetime, timedelta
from itertools import count
from math import inf
from typing import Final, Generic, TypeVar

from pulumi_holdfast.controller.kube.client import Backoff

K = TypeVar("K", bound=Hashable)

# Timers are for a time of day, and its clock may be set: it is read again at least this often.
_CLOCK_INTERVAL: Final = timedelta(seconds=5)

# A failed reconciliation is retried within minutes: an error in one job usually persists.
_MOST_RETRY_SECONDS: Final = 60.0

# Changes that lead to no action come in waves, and are counted together: `urgency.py`.
SOON_SECONDS: Final = 10.0

#: Which part of the workers one namespace may have at most.
OF_WORKERS: Final = 0.75

# Canceled timers are kept until they are due, or until there are this many of them.
_STALE: Final = 64


def utc_now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


class WorkQueue(Generic[K]):
    """Keys to reconcile. Used from one event loop.

    The groups of keys take turns, so that one with many or costly keys delays another by one of its keys at a time, and at most
    `most_at_once` keys of one are worked on, so that requests which take long leave workers to the others. Within a group
    the key that has waited longest is next. A key that is added while a worker has it is queued once more after that, at once: the last state of a pod that ends may be
    seen for some milliseconds only. `add_at` requires that `run` runs.
    """

    def __init__(
        self,
        *,
        now: Callable[[], datetime] = utc_now,
        group: Callable[[K], Hashable] = lambda _: None,
        most_at_once: float = inf,
    ) -> None:
        self._now = now
        self._group = group
        self._most_at_once = most_at_once
        self._busy = Counter[Hashable]()
        # The groups in the order of their turns; each has a key.
        self._ready: OrderedDict[Hashable, deque[K]] = OrderedDict()
        self._queued: set[K] = set()
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._soon: set[K] = set()
        self._timers: dict[K, datetime] = {}
        self._heap: list[tuple[datetime, int, K]] = []
        self._order = count()
        self._backoffs: dict[K, Backoff] = {}
        self._filled = asyncio.Event()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._queued)

    @property
    def planned(self) -> int:
        """How many timers are kept, including canceled ones."""
        return len(self._heap)

    def add(self, key: K) -> None:
        """Queue a key."""
        if key in self._working:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.setdefault(self._group(key), deque()).append(key)
            self._filled.set()

    def add_soon(self, key: K) -> None:
        """Queue a key within seconds, unless a worker takes it before: once for all calls until then."""
        if key not in self._soon:
            self._soon.add(key)
            asyncio.get_running_loop().call_later(SOON_SECONDS, self._add_if_waiting, key)

    def add_at(self, key: K, at: datetime | None) -> None:
        """Queue a key at a time of day, which replaces its previous one; None for never."""
        if at is None:
            self._timers.pop(key, None)
        elif self._timers.get(key) != at:
            self._timers[key] = at
            heapq.heappush(self._heap, (at, next(self._order), key))
            if len(self._heap) > 2 * len(self._timers) + _STALE:
                self._drop_stale()
            self._changed.set()

    def retry(self, key: K, asked_for: float | None = None) -> None:
        """Queue a key again after a failure, each time later, at the earliest in `asked_for` seconds."""
        backoff = self._backoffs.setdefault(key, Backoff(most=_MOST_RETRY_SECONDS))
        asyncio.get_running_loop().call_later(backoff.seconds(asked_for), self.add, key)

    def succeed(self, key: K) -> None:
        """Reset the backoff of a key."""
        self._backoffs.pop(key, None)

    def forget(self, key: K) -> None:
        """Cancel the timer of a key and reset its backoff."""
        self._timers.pop(key, None)
        self._backoffs.pop(key, None)

    async def get(self) -> K:
        """Take the next key of the group whose turn it is; `done` must follow."""
        while (key := self._take()) is None:
            self._filled.clear()
            await self._filled.wait()
        self._queued.discard(key)
        self._soon.discard(key)
        self._working.add(key)
        return key

    def _take(self) -> K | None:
        for group, keys in self._ready.items():
            if self._busy[group] < self._most_at_once:
                self._busy[group] += 1
                del self._ready[group]
                key = keys.popleft()
                if keys:
                    self._ready[group] = keys
                return key
        return None

    def done(self, key: K) -> None:
        """Mark a key as no longer in work."""
        self._working.discard(key)
        group = self._group(key)
        self._busy[group] -= 1
        if not self._busy[group]:
            del self._busy[group]
        if group in self._ready:
            self._filled.set()
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    async def run(self) -> None:
        """Queue keys at their times until canceled."""
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

    def _add_if_waiting(self, key: K) -> None:
        if key in self._soon:
            self._soon.discard(key)
            self.add(key)

    def _drop_stale(self) -> None:
        self._heap = [timer for timer in self._heap if self._timers.get(timer[2]) == timer[0]]
        heapq.heapify(self._heap)

    def _add_due(self) -> None:
        now = self._now()
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heapq.heappop(self._heap)
            if self._timers.get(key) == at:  # otherwise it was postponed or canceled
                del self._timers[key]
                self.add(key)
