"""Caches of watched objects, and the informers that keep them up to date.

An informer lists, then watches, and lists again only when the watch cannot continue.
"""

import asyncio
import json
import logging
import random
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar, cast

from pulumi_holdfast.controller.kube.client import ApiError, Backoff, Client, Kind, Unreachable
from pulumi_holdfast.controller.kube.objects import metadata_of, text
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping

T = TypeVar("T")

Name: TypeAlias = tuple[str, str]
"""Namespace (empty for an object of the cluster's scope) and name."""

_VERSION: Final = re.compile(r"[0-9]{1,20}", re.ASCII)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Change(Generic[T]):
    """A change of one object: `before` is None for a new object, `after` for a deleted one. `is_own`: the controller wrote it."""

    name: Name
    before: T | None
    after: T | None
    is_own: bool = False


class Cache(Generic[T]):
    """The objects of one kind, reduced to the fields that are read.

    `keep` trims an object, or returns None for one to ignore. `indexes` return the keys under which an object is found.
    Handlers are called for every change of a trimmed object, in the order of the changes, after all indexes are updated.

    An object that `keep`, an index or a handler cannot process concerns no other object: the error is counted in `errors`, and
    logged once for the object. A version that cannot be cached is ignored, and the version before it stays.
    """

    def __init__(
        self,
        keep: Callable[[Json], T | None],
        *,
        indexes: Mapping[str, Callable[[Name, T], Iterable[str]]] | None = None,
    ) -> None:
        self._keep = keep
        self._indexes = indexes or {}
        self._objects: dict[Name, T] = {}
        self._marks: dict[Name, tuple[str, int]] = {}
        # The keys of each object: computing them again to forget them would double the cost of a change.
        self._keys: dict[Name, list[tuple[str, str]]] = {}
        self._found: dict[tuple[str, str], dict[Name, T]] = {}
        self._listeners: list[Callable[[Change[T]], None]] = []
        self._logged: set[Name] = set()
        self.errors = 0

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def add_handler(self, listener: Callable[[Change[T]], None]) -> None:
        """Call `listener` with every change from now on."""
        self._listeners.append(listener)

    def get(self, namespace: str, name: str) -> T | None:
        """Return a trimmed object; the namespace is empty for a cluster-scoped one."""
        return self._objects.get((namespace, name))

    def known(self) -> list[Name]:
        """Return the names of all objects."""
        return list(self._objects)

    def all(self, index: str) -> list[T]:
        """Return the objects that `index` has under any key."""
        return [obj for (each, _), found in self._found.items() if each == index for obj in found.values()]

    def names(self, index: str, key: str) -> list[Name]:
        """Return the names of the objects that `index` has under `key`."""
        return list(self._found.get((index, key), {}))

    def has(self, index: str, key: str) -> bool:
        """Whether `index` has any object under `key`."""
        return (index, key) in self._found

    def count(self, index: str, key: str) -> int:
        """Return how many objects `index` has under `key`."""
        return len(self._found.get((index, key), {}))

    def find(self, index: str, key: str) -> list[T]:
        """Return the objects that `index` has under `key`."""
        return list(self._found.get((index, key), {}).values())

    def put(self, obj: Json, *, is_listed: bool = False, is_own: bool = False) -> None:
        """Store an object from a watch, unless a later version of it is known.

        An object from a list is always stored: the versions of a restored etcd have gone back.
        """
        name, uid, version = name_of(obj), text(metadata_of(obj).get("uid")), _version(obj)
        known = self._marks.get(name)
        if known is not None and known[0] != uid:
            self._set(name, None)  # deleted and created again under its name: handlers see two objects
        elif known is not None and version < known[1] and not is_listed:
            return
        try:
            after = self._keep(obj)
            keys = [] if after is None else self._keys_of(name, after)
        except Exception:  # noqa: BLE001  # one object must not stop the others
            self._count_error(name, "an object cannot be cached")
            return
        self._set(name, after, keys, (uid, version), is_own=is_own)

    def refresh(self, obj: Json, *, is_own: bool = True) -> None:
        """Store the response of the controller's own write, before the watch delivers it.

        `is_own`: the object has no other change, since the write required the version that is known.

        An object that is not known any more stays unknown: it may have been deleted since.
        """
        known = self._marks.get(name_of(obj))
        if known is not None and known[0] == text(metadata_of(obj).get("uid")):
            self.put(obj, is_own=is_own)

    def remove(self, obj: Json) -> None:
        """Store an object's last version, then remove it."""
        self.put(obj)
        self._set(name_of(obj), None)
        self._logged.discard(name_of(obj))

    def retain(self, names: set[Name]) -> None:
        """Remove all objects but these."""
        for name in [each for each in self._objects if each not in names]:
            self._set(name, None)

    def _set(
        self,
        name: Name,
        after: T | None,
        keys: list[tuple[str, str]] | None = None,
        mark: tuple[str, int] = ("", 0),
        *,
        is_own: bool = False,
    ) -> None:
        before = self._objects.get(name)
        if after is None:
            self._objects.pop(name, None)
            self._marks.pop(name, None)
        else:
            self._objects[name] = after
            self._marks[name] = mark
        self._index(name, after, keys or [])
        if before != after:
            change = Change(name=name, before=before, after=after, is_own=is_own)
            for listener in self._listeners:
                self._call(listener, change)

    def _call(self, listener: Callable[[Change[T]], None], change: Change[T]) -> None:
        try:
            listener(change)
        except Exception:  # noqa: BLE001  # as in put
            self._count_error(change.name, "a change cannot be processed")

    def _count_error(self, name: Name, what: str) -> None:
        self.errors += 1
        if name not in self._logged:
            self._logged.add(name)
            _log.exception("%s", what, extra={"object": "/".join(filter(None, name))})

    def _index(self, name: Name, after: T | None, keys: list[tuple[str, str]]) -> None:
        before = self._keys.pop(name, [])
        for found_by in before:
            if found_by not in keys:
                entries = self._found.get(found_by, {})
                entries.pop(name, None)
                if not entries:
                    self._found.pop(found_by, None)
        if after is not None:
            self._keys[name] = keys
            for found_by in keys:
                self._found.setdefault(found_by, {})[name] = after

    def _keys_of(self, name: Name, obj: T) -> list[tuple[str, str]]:
        return [(index, key) for index, keys in self._indexes.items() for key in keys(name, obj)]


def name_of(obj: Json) -> Name:
    """Return an object's namespace and name."""
    metadata = metadata_of(obj)
    return text(metadata.get("namespace")), text(metadata.get("name"))


def _version(obj: Json) -> int:
    # Resource versions of one kind can be compared as numbers: Kubernetes guarantees it from 1.35 on, and etcd has always
    # counted them so.
    version = text(metadata_of(obj).get("resourceVersion"))
    return int(version) if _VERSION.fullmatch(version) else 0


# Each watch ends at another time, so that they do not all restart in the same second.
_WATCH_SECONDS: Final = (240, 480)

# How often to check whether a kind is served that was not. Its CRD may be installed with an operator at any time.
_ABSENT_SECONDS: Final = (15.0, 30.0)

# After this many consecutive watches without an event everything is listed again.
_WATCH_FAILURES: Final = 5

# A kind with cached objects counts as removed after this many consecutive 404s.
_SURELY_MISSING: Final = 3

_AT_ONCE_SECONDS: Final = 1.0


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
                await asyncio.sleep(0)  # health checks and the lease come first
            go_on, self._version = page.continue_token, page.version
            obj = page = None  # the next page is not read beside this one
            if go_on is None:
                break
        self.cache.retain(names)
        self._missing = 0
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
