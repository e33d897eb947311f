"""Keeps a cache up to date: list, then watch, and list again only when the watch cannot continue."""

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Final, Generic, TypeVar, cast

from pulumi_holdfast.controller.api.backoff import Backoff
from pulumi_holdfast.controller.api.cache import Cache, Name, name_of
from pulumi_holdfast.controller.api.client import ApiError, Client, Kind, Unreachable
from pulumi_holdfast.controller.api.objects import metadata_of, text
from pulumi_holdfast.ladder.json import JsonValue, mapping

T = TypeVar("T")

# Each watch ends at another time, so that they do not all restart in the same second.
_WATCH_SECONDS: Final = (240, 480)

# How often to check whether a kind is served that was not. Its CRD may be installed with an operator at any time.
_ABSENT_SECONDS: Final = (15.0, 30.0)

# After this many consecutive watches without an event everything is listed again.
_WATCH_FAILURES: Final = 5

# A kind with cached objects counts as removed after this many consecutive 404s.
_SURELY_MISSING: Final = 3

_AT_ONCE_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


class Reconnection:
    """Ends the backoff of all informers of a server as soon as one of them can list again.

    Caches of different ages contradict each other: pods from before an outage look lost beside nodes from after it.
    """

    def __init__(self) -> None:
        self._answered = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Return after so many seconds, or once an informer has listed again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._answered.wait()

    def answered(self) -> None:
        """End the waits that are under way."""
        before, self._answered = self._answered, asyncio.Event()
        before.set()


class Informer(Generic[T]):
    """Follows all objects of a kind with some labels, and updates `cache`.

    A kind that the server does not serve has no objects until it is served. `lists` and `watches` count their starts.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind,
        cache: Cache[T],
        *,
        labels: str | None = None,
        reconnection: Reconnection | None = None,
    ) -> None:
        self.kind = kind
        self.cache = cache
        self.lists = 0
        self.watches = 0
        self._client = client
        self._labels = labels
        self._synced = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._backoff = Backoff()
        self._reconnection = reconnection or Reconnection()
        self._version = ""
        self._missing = 0
        self._failures = 0

    @property
    def is_synced(self) -> bool:
        """Whether the cache has received all objects at least once."""
        return self._synced.is_set()

    @property
    def cached(self) -> int:
        """How many objects the cache has."""
        return len(self.cache)

    @property
    def errors(self) -> int:
        """How many objects and changes could not be processed."""
        return self.cache.errors + self._failures

    @property
    def is_served(self) -> bool:
        """Whether the server serves the kind, as far as is known."""
        return self._missing < _SURELY_MISSING

    async def wait_synced(self) -> None:
        """Return once the cache has all objects."""
        await self._synced.wait()

    def relist(self) -> None:
        """List again now: the set of relevant objects has changed."""
        if self._following is not None:
            self._following.cancel()

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            self._following = asyncio.create_task(self._follow(), name=f"follow {self.kind.plural}")
            try:
                await asyncio.wait({self._following})
            finally:
                self._following.cancel()
            if not self._following.cancelled():
                self._failures += 1
                _log.error("following %s failed", self.kind.plural, exc_info=self._following.exception())
                await asyncio.sleep(self._backoff.seconds())

    async def _follow(self) -> None:
        while True:
            await self._list_until_answered()
            try:
                await self._watch_on()
            except (ApiError, Unreachable) as error:
                await self._wait_after(error)

    async def _list_until_answered(self) -> None:
        """List until it succeeds; the first success after failures ends the backoff of the other informers."""
        has_failed = False
        while True:
            try:
                await self._list()
            except (ApiError, Unreachable) as error:
                has_failed = True
                await self._wait_after(error, self._reconnection.wait)
            else:
                break
        if has_failed:
            self._reconnection.answered()

    async def _list(self) -> None:
        self.lists += 1
        names: set[Name] = set()
        go_on: str | None = None
        while True:
            page = await self._client.page(self.kind, labels=self._labels, continue_token=go_on)
            for obj in page.objects:
                names.add(name_of(obj))
                self.cache.put(obj, is_listed=True)
            go_on = page.continue_token
            if go_on is None:
                break
        self.cache.retain(names)
        self._missing = 0
        self._version = page.version
        self._synced.set()

    async def _watch_on(self) -> None:
        """Watch, each time from the resource version at which the last watch ended, until that fails repeatedly."""
        failures = 0
        while failures < _WATCH_FAILURES:
            before = self._version
            try:
                await self._watch()
            except Unreachable as error:
                await self._wait_after(error)
            except ApiError as error:
                if not error.is_overload:
                    raise
                await self._wait_after(error)
            # A server or proxy that ends each watch at once counts as failing too.
            failures = failures + 1 if self._version == before else 0

    async def _watch(self) -> None:
        self.watches += 1
        began = asyncio.get_running_loop().time()
        seconds = random.randint(*_WATCH_SECONDS)  # noqa: S311 - spreads requests, keeps no secret
        stream = self._client.watch(self.kind, labels=self._labels, version=self._version, seconds=seconds)
        lines = 0
        async with aclosing(stream):
            async for line in stream:
                lines += 1
                self._take(line)
                self._backoff.succeed()
        if not lines and asyncio.get_running_loop().time() - began < _AT_ONCE_SECONDS:
            raise Unreachable(self.kind.plural, "the watch ended immediately")
        self._backoff.succeed()

    def _take(self, line: bytes) -> None:
        try:
            event = mapping(cast("JsonValue", json.loads(line)))
        except ValueError as error:
            raise Unreachable(self.kind.plural, f"the watch is not JSON: {error}") from error
        obj = mapping(event.get("object"))
        match event.get("type"):
            case "ERROR":
                code = obj.get("code")
                raise ApiError(
                    code if isinstance(code, int) else 0, text(obj.get("reason")), text(obj.get("message"))
                )
            case "DELETED":
                self.cache.remove(obj)
            case "ADDED" | "MODIFIED":
                self.cache.put(obj)
            case _:
                pass  # a bookmark: only the version to continue from
        self._version = text(metadata_of(obj).get("resourceVersion")) or self._version

    async def _wait_for_kind(self) -> None:
        self._missing += 1
        if not self.is_served or not len(self.cache):
            self._missing = _SURELY_MISSING
            self.cache.retain(set())
            self._synced.set()
        seconds = self._backoff.seconds() if self.is_served else random.uniform(*_ABSENT_SECONDS)  # noqa: S311 - as above
        await asyncio.sleep(seconds)

    async def _wait_after(
        self, error: ApiError | Unreachable, wait: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Wait before the next attempt.

        A failed watch does not share the others' end of the backoff: a server that lists but ends each watch would get
        requests without a pause.
        """
        if isinstance(error, ApiError) and error.is_missing:
            await self._wait_for_kind()
            return
        asked_for = error.retry_after_seconds if isinstance(error, ApiError) else None
        seconds = self._backoff.seconds(asked_for)
        if not (isinstance(error, ApiError) and error.is_too_old):
            _log.warning("following %s, again in %.1f s: %s", self.kind.plural, seconds, error)
        await (wait if asked_for is None else asyncio.sleep)(seconds)
