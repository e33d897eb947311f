"""An in-memory API server for the controller's client: versions, selectors, patches and watches; and virtual time."""

import asyncio
import copy
import json
import re
import selectors
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from pulumi_holdfast.controller.kube.client import ApiError, Kind, Unreachable
from pulumi_holdfast.ladder.json import Json, JsonValue

Object = dict[str, Any]

_PATH = re.compile(
    r"/(?:api|apis/[^/]+)/[^/]+(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/]+)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[^/]+))?"
)


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A received request."""

    method: str
    path: str
    query: Mapping[str, str]
    body: JsonValue
    seconds: float


@dataclass
class FakeApi:
    """Serves the objects that were put into it. `fail` may raise instead of a response; `absent` plurals are not served."""

    sent: list[Sent] = field(default_factory=list[Sent])
    absent: set[str] = field(default_factory=set[str])
    fail: Callable[[Sent], None] = lambda _: None
    page: int = 2
    _objects: dict[str, dict[tuple[str, str], Object]] = field(
        default_factory=dict[str, dict[tuple[str, str], Object]]
    )
    _history: list[tuple[int, str, str, Object]] = field(default_factory=list[tuple[int, str, str, Object]])
    _version: int = 100
    _oldest: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _epoch: int = 0

    async def put(self, kind: Kind, obj: Json) -> Json:
        """Create or replace an object, as another client."""
        return await self._store(kind.plural, copy.deepcopy(cast("Object", obj)))

    async def drop(self, kind: Kind, namespace: str, name: str) -> None:
        """Delete an object, as another client."""
        gone = self._objects[kind.plural].pop((namespace, name))
        await self._tell("DELETED", kind.plural, gone)

    async def break_watches(self, *, forget: bool = False) -> None:
        """End every watch; with `forget` no watch can continue from where it ended."""
        self._epoch += 1
        if forget:
            self._version += 1
            self._oldest = self._version
        async with self._changed:
            self._changed.notify_all()

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return an object."""
        return self._objects.get(kind.plural, {}).get((namespace, name))

    def of(self, kind: Kind) -> list[Object]:
        """Return every object of a kind."""
        return list(self._objects.get(kind.plural, {}).values())

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonValue = None,
        content_type: str = "application/json",
        seconds: float = 30.0,
    ) -> Json:
        """Respond as an API server does."""
        sent = Sent(method=method, path=path, query=query or {}, body=body, seconds=seconds)
        self.sent.append(sent)
        await asyncio.sleep(0)
        self.fail(sent)
        found = _PATH.fullmatch(path)
        assert found, f"{path} is a path of the API's"
        plural, namespace, name = found["plural"], found["namespace"] or "", found["name"]
        if plural in self.absent:
            raise ApiError(404, "NotFound", "404 page not found")
        known = self._objects.setdefault(plural, {})
        if name is None:
            if method == "GET":
                return self._list(plural, namespace, sent.query)
            created = copy.deepcopy(cast("Object", body))
            created["metadata"].setdefault("namespace", namespace)
            if sent.query.get("dryRun") == "All":
                return created
            if (namespace, created["metadata"]["name"]) in known:
                raise ApiError(409, "AlreadyExists", "already exists")
            return await self._store(plural, created)
        if (namespace, name) not in known:
            raise ApiError(404, "NotFound", f"{plural} {name} not found")
        return await self._on_object(method, plural, known[(namespace, name)], body)

    async def lines(
        self, path: str, query: Mapping[str, str], *, silent_seconds: float
    ) -> AsyncGenerator[bytes]:
        """Yield changes since a version until `break_watches`."""
        sent = Sent(method="WATCH", path=path, query=query, body=None, seconds=silent_seconds)
        self.sent.append(sent)
        self.fail(sent)
        found = _PATH.fullmatch(path)
        assert found, f"{path} is a path of the API's"
        epoch, reached = self._epoch, int(query["resourceVersion"])
        if reached < self._oldest:
            status = {"kind": "Status", "code": 410, "reason": "Expired"}
            yield json.dumps({"type": "ERROR", "object": status}).encode()
            return
        while epoch == self._epoch:
            for version, what, plural, obj in [each for each in self._history if each[0] > reached]:
                reached = version
                if plural == found["plural"] and _selected(obj, query):
                    yield json.dumps({"type": what, "object": obj}).encode()
            async with self._changed:
                if epoch == self._epoch and self._version <= reached:
                    await self._changed.wait()
        raise Unreachable("fake", "the watch broke")

    def _list(self, plural: str, namespace: str, query: Mapping[str, str]) -> Json:
        everything = [
            obj
            for (within, _), obj in sorted(self._objects.get(plural, {}).items())
            if namespace in ("", within) and _selected(obj, query)
        ]
        start = int(query.get("continue") or 0)
        end = start + min(self.page, int(query.get("limit") or self.page))
        metadata: Json = {
            "resourceVersion": str(self._version),
            **({"continue": str(end)} if end < len(everything) else {}),
        }
        return {"metadata": metadata, "items": copy.deepcopy(everything[start:end])}

    async def _on_object(self, method: str, plural: str, obj: Object, body: JsonValue) -> Json:
        if method == "GET":
            return copy.deepcopy(obj)
        given = copy.deepcopy(cast("Object", body))
        conditions = given.get("preconditions", {}) if method == "DELETE" else given.get("metadata", {})
        for name in ("uid", "resourceVersion"):
            if conditions.get(name) not in (None, obj["metadata"].get(name)):
                raise ApiError(409, "Conflict", "the object has been modified")
        if method == "DELETE":
            del self._objects[plural][(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])]
            await self._tell("DELETED", plural, obj)
            return obj
        changed = given if method == "PUT" else _merged(obj, given)
        changed["metadata"]["uid"] = obj["metadata"]["uid"]
        return await self._store(plural, changed)

    async def _store(self, plural: str, obj: Object) -> Json:
        metadata = obj.setdefault("metadata", {})
        key = (metadata.get("namespace", ""), metadata["name"])
        known = self._objects.setdefault(plural, {})
        what = "MODIFIED" if key in known else "ADDED"
        metadata.setdefault("uid", f"uid-of-{metadata['name']}")
        known[key] = obj
        await self._tell(what, plural, obj)
        return copy.deepcopy(obj)

    async def _tell(self, what: str, plural: str, obj: Object) -> None:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        self._history.append((self._version, what, plural, copy.deepcopy(obj)))
        async with self._changed:
            self._changed.notify_all()


def _merged(obj: Object, patch: Object) -> Object:
    """Apply a merge patch."""
    merged = dict(obj)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict) and isinstance(merged.get(name), dict):
            merged[name] = _merged(merged[name], cast("Object", value))
        else:
            merged[name] = value
    return merged


def _selected(obj: Object, query: Mapping[str, str]) -> bool:
    labels: dict[str, str] = obj["metadata"].get("labels") or {}
    for wanted in (query.get("labelSelector") or "").split(","):
        name, equals, value = wanted.partition("=")
        if not wanted:
            continue
        if wanted.startswith("!"):
            if wanted[1:] in labels:
                return False
        elif name not in labels or (equals and labels[name] != value):
            return False
    return True


T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """A selector that never waits: the time of each wait is added to the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            # A loop without timers would block forever: the test waits for something that never happens.
            assert timeout is not None, "nothing will ever happen any more"
            self.now += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jumping = _Selector()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now


def run_virtually(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine to completion; `loop.time()` is the time that it would have taken."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)
