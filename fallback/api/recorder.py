"""Writes Events, beside the work and never in its way."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from holdfast.fallback.api.client import Client
from holdfast.fallback.api.errors import ApiError, Deposed, Unreachable
from holdfast.fallback.api.event_log import Entry, EventLog, Occurrence, event_object, repetition
from holdfast.fallback.api.kinds import EVENT
from holdfast.fallback.api.reading import mapping

# More than that wait only when the API server takes none, and then the oldest say least.
_WAITING: Final = 1000
_CONFLICT: Final = 409

_log = logging.getLogger(__name__)


class Recorder:
    """Takes what is to be said, and writes it as Events while `run` runs. What cannot be written is dropped.

    `written` is told whether each went well.
    """

    def __init__(
        self, client: Client, *, instance: str, written: Callable[[bool], None] = lambda _: None
    ) -> None:
        self._client = client
        self._instance = instance
        self._written = written
        self._log = EventLog()
        self._waiting: deque[Entry] = deque(maxlen=_WAITING)
        self._filled = asyncio.Event()

    def say(self, said: Occurrence) -> None:
        """Have something written, unless it was said just now."""
        entry = self._log.take(said, datetime.now(UTC), asyncio.get_running_loop().time())
        if entry is not None:
            self._waiting.append(entry)
            self._filled.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            while self._waiting:
                entry = self._waiting.popleft()
                try:
                    await self._write(entry)
                except Deposed as error:
                    self._drop_all(entry, error)
                except (ApiError, Unreachable) as error:
                    _log.warning("an Event was not written: %s", error, extra={"reason": entry.said.reason})
                    self._written(False)
                else:
                    self._written(True)
            self._filled.clear()
            await self._filled.wait()

    def _drop_all(self, entry: Entry, error: Deposed) -> None:
        """Drop what waits, too: whoever leads now says what is so, and a line for each would hide that it does."""
        dropped = [entry, *self._waiting]
        self._waiting.clear()
        _log.info("Events that are not written: %d: %s", len(dropped), error)
        for _ in dropped:
            self._written(False)

    async def _write(self, entry: Entry) -> None:
        namespace = entry.said.subject.namespace
        if entry.count > 1:
            try:
                await self._client.patch(EVENT, namespace, entry.name, repetition(entry))
            except ApiError as error:
                if not error.is_missing:
                    raise
            else:
                return
        try:
            await self._client.create(EVENT, namespace, event_object(entry, instance=self._instance))
        except ApiError as error:
            if error.status != _CONFLICT:
                raise
            known = mapping(await self._client.get(EVENT, namespace, entry.name))
            count = known.get("count")
            counted = self._log.count_on(entry, count if isinstance(count, int) else 1)
            await self._client.patch(EVENT, namespace, entry.name, repetition(counted))
