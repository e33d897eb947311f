"""Reads and writes objects of one API server as plain JSON: kinds, errors and the client."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final, Protocol

from pulumi_holdfast.controller.kube.objects import metadata_of, text
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence

# ruff: noqa: N818 - a name that says what is wrong needs no "Error" behind it


_CONFLICT: Final = 409
_GONE: Final = 410
_MISSING: Final = 404
TOO_LARGE: Final = 413
_THROTTLED: Final = 429
_SERVER: Final = 500


class ApiError(Exception):
    """The API server rejected a request: its status code, its reason and its message.

    `retry_after_seconds` is the server's Retry-After, None without one.
    """

    def __init__(
        self, status: int, reason: str, message: str, *, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message or f"the API server answered {status} {reason}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_seconds = retry_after_seconds

    @property
    def is_conflict(self) -> bool:
        """Whether the object has changed: observe it again before the next decision."""
        return self.status == _CONFLICT

    @property
    def is_missing(self) -> bool:
        """Whether the object does not exist, or the server does not serve its kind."""
        return self.status == _MISSING

    @property
    def is_too_old(self) -> bool:
        """Whether the server no longer has the resource version of a watch: list again."""
        return self.status == _GONE

    @property
    def is_overload(self) -> bool:
        """Whether the server is overloaded or broken: retry later."""
        return self.status == _THROTTLED or self.status >= _SERVER


class Unreachable(Exception):
    """The API server does not answer, or its answer was interrupted."""

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(f"the API server at {server} does not answer ({cause})")
        self.server = server


class LeadershipLost(Exception):
    """Another replica may lead by now, so nothing is written."""

    def __init__(self) -> None:
        super().__init__("this replica no longer leads: it writes nothing")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of object: its names, and the paths of its objects."""

    api_version: str
    name: str
    plural: str
    namespaced: bool = True

    def collection(self, namespace: str | None = None) -> str:
        """Return the path of all its objects, in one namespace or in all of them (None)."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        within = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{within}/{self.plural}"

    def item(self, namespace: str | None, name: str, subresource: str | None = None) -> str:
        """Return the path of one object, or of one of its subresources."""
        tail = f"/{subresource}" if subresource else ""
        return f"{self.collection(namespace)}/{name}{tail}"


NAMESPACE: Final = Kind(api_version="v1", name="Namespace", plural="namespaces", namespaced=False)
NODE: Final = Kind(api_version="v1", name="Node", plural="nodes", namespaced=False)
POD: Final = Kind(api_version="v1", name="Pod", plural="pods")
EVENT: Final = Kind(api_version="v1", name="Event", plural="events")
JOB: Final = Kind(api_version="batch/v1", name="Job", plural="jobs")
LEASE: Final = Kind(api_version="coordination.k8s.io/v1", name="Lease", plural="leases")
JOBSET: Final = Kind(api_version="jobset.x-k8s.io/v1alpha2", name="JobSet", plural="jobsets")
RAYJOB: Final = Kind(api_version="ray.io/v1", name="RayJob", plural="rayjobs")
RAYCLUSTER: Final = Kind(api_version="ray.io/v1", name="RayCluster", plural="rayclusters")
NODECLAIM: Final = Kind(
    api_version="karpenter.sh/v1", name="NodeClaim", plural="nodeclaims", namespaced=False
)
NODEPOOL: Final = Kind(api_version="karpenter.sh/v1", name="NodePool", plural="nodepools", namespaced=False)
WORKLOAD: Final = Kind(api_version="kueue.x-k8s.io/v1beta2", name="Workload", plural="workloads")
FALLBACK_POLICY: Final = Kind(
    api_version="holdfast.dev/v1alpha1", name="FallbackPolicy", plural="fallbackpolicies"
)


FIELD_MANAGER: Final = "holdfast-fallback"

MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"

# Objects per page: fewer after an answer that is too long, since authors choose how large their objects are.
_MOST_PER_PAGE: Final = 500
_FEWER: Final = 4

# An API server sends a bookmark about every minute; twice that time without any means that the connection is dead.
_SILENT_SECONDS: Final = 150.0

# A longer Retry-After is shortened to this.
_MOST_QUIET_SECONDS: Final = 30.0


class RequestSender(Protocol):
    """The part of a connection that a client needs."""

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
        """Send one request and return the response's JSON."""
        ...

    def lines(self, path: str, query: Mapping[str, str], *, silent_seconds: float) -> AsyncGenerator[bytes]:
        """Yield the response's lines."""
        ...


class Client:
    """The objects of one API server. Used from one event loop.

    Every call raises ApiError when the server rejects it and Unreachable when it does not answer. After a 429 the client
    sends no request for as long as the server asked; a call that is `urgent` does not wait for that.

    `may_write` returns for how many seconds this replica certainly leads, and raises LeadershipLost if it does not: each
    write that is not urgent calls it last, and times out with it. `answered` is called after each answered request.
    """

    def __init__(
        self,
        requests: RequestSender,
        *,
        may_write: Callable[[], float] = lambda: inf,
        answered: Callable[[], None] = lambda: None,
    ) -> None:
        self._requests = requests
        self._may_write = may_write
        self._answered = answered
        self._quiet_until = 0.0
        self._page_sizes: dict[str, int] = {}

    async def get(
        self, kind: Kind, namespace: str | None, name: str, *, seconds: float = 30.0, urgent: bool = False
    ) -> Json:
        """Return an object. Raises ApiError 404 if there is none."""
        return await self._send("GET", kind.item(namespace, name), seconds=seconds, urgent=urgent)

    async def find(
        self, kind: Kind, namespace: str | None, name: str, *, seconds: float = 30.0, urgent: bool = False
    ) -> Json | None:
        """Return an object; None if there is none."""
        try:
            return await self.get(kind, namespace, name, seconds=seconds, urgent=urgent)
        except ApiError as error:
            if error.is_missing:
                return None
            raise

    async def page(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        continue_token: str | None = None,
    ) -> "Page":
        """Return one page of a kind's current objects, from the server and not from a cache.

        `labels` is a label selector; `continue_token` is the previous page's.
        """
        given = _given({"labelSelector": labels, "continue": continue_token})
        while True:
            size = self._page_sizes.get(kind.plural, _MOST_PER_PAGE)
            try:
                query = {"limit": str(size), **given}
                answer = await self._send("GET", kind.collection(namespace), query=query)
            except ApiError as error:
                if error.status != TOO_LARGE or size == 1:
                    raise
                self._page_sizes[kind.plural] = max(1, size // _FEWER)
            else:
                self._page_sizes[kind.plural] = min(_MOST_PER_PAGE, 2 * size)
                return Page(answer)

    async def each(self, kind: Kind, *, namespace: str, labels: str) -> AsyncGenerator[Json]:
        """Yield all of a kind's current objects with these labels, from the server and not from a cache.

        They are read in pages: keep only what is needed of each, since their authors choose how large and how many they are.
        """
        go_on: str | None = None
        while True:
            page = await self.page(kind, namespace=namespace, labels=labels, continue_token=go_on)
            for obj in page.objects:
                yield obj
                await asyncio.sleep(0)
            go_on = page.continue_token
            if go_on is None:
                return

    def watch(self, kind: Kind, *, labels: str | None, version: str, seconds: int) -> AsyncGenerator[bytes]:
        """Yield the changes to a kind's objects since `version`, one JSON document each, for `seconds`."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
            **_given({"labelSelector": labels}),
        }
        return self._requests.lines(kind.collection(), query, silent_seconds=_SILENT_SECONDS)

    async def create(
        self, kind: Kind, namespace: str | None, obj: Json, *, seconds: float = 30.0, urgent: bool = False
    ) -> Json:
        """Create an object and return it. Raises ApiError 409 if it exists."""
        path = kind.collection(namespace)
        return await self._send("POST", path, query=_MANAGED, body=obj, seconds=seconds, urgent=urgent)

    async def dry_run(self, kind: Kind, namespace: str | None, obj: Json) -> Json:
        """Return an object as it would be created, without creating it. Raises ApiError as a creation does."""
        query = {**_MANAGED, "dryRun": "All"}
        return await self._send("POST", kind.collection(namespace), query=query, body=obj)

    async def create_if_absent(self, kind: Kind, namespace: str | None, obj: Json) -> None:
        """Create an object, unless one with its name exists."""
        try:
            await self.create(kind, namespace, obj)
        except ApiError as error:
            if not error.is_conflict:
                raise

    async def replace(
        self, kind: Kind, namespace: str | None, name: str, obj: Json, *, seconds: float, urgent: bool = False
    ) -> Json:
        """Replace an object. Raises ApiError 409 if its `resourceVersion` differs."""
        path = kind.item(namespace, name)
        return await self._send("PUT", path, query=_MANAGED, body=obj, seconds=seconds, urgent=urgent)

    async def patch(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        patch: "Json | list[Json]",
        *,
        subresource: str | None = None,
    ) -> Json:
        """Patch an object and return it: a list is a JSON patch, an object is merged (a null removes a field).

        With a `metadata.resourceVersion` the server rejects the patch with 409 if the object's differs.
        """
        path = kind.item(namespace, name, subresource)
        content_type = JSON_PATCH if isinstance(patch, list) else MERGE
        return await self._send("PATCH", path, query=_MANAGED, body=patch, content_type=content_type)

    async def delete(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        *,
        uid: str,
        version: str | None = None,
        propagation: str = "Background",
        grace_seconds: int | None = None,
        seconds: float = 30.0,
    ) -> None:
        """Delete an object if it has this `uid` (and this `version`, if given).

        An object that does not exist any more, or has been replaced, is left as it is. Raises ApiError (a conflict) if it has
        changed since `version`.
        """
        conditions: Json = {"uid": uid, **_given({"resourceVersion": version})}
        options: dict[str, JsonValue] = {"propagationPolicy": propagation, "preconditions": conditions}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        try:
            await self._send("DELETE", kind.item(namespace, name), body=options, seconds=seconds)
        except ApiError as error:
            if error.is_missing or (error.is_conflict and version is None):
                return
            raise

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonValue = None,
        content_type: str = "application/json",
        seconds: float = 30.0,
        urgent: bool = False,
    ) -> Json:
        clock = asyncio.get_running_loop().time
        if not urgent and self._quiet_until > clock():
            await asyncio.sleep(self._quiet_until - clock())
        if not urgent and method != "GET":
            seconds = min(seconds, self._may_write())
        try:
            answer = await self._requests.request(
                method, path, query=query, body=body, content_type=content_type, seconds=seconds
            )
        except ApiError as error:
            if error.is_overload and error.retry_after_seconds:
                quiet = min(error.retry_after_seconds, _MOST_QUIET_SECONDS)
                self._quiet_until = max(self._quiet_until, clock() + quiet)
            raise
        self._answered()
        return answer


class Page:
    """Some objects of a kind, and how to get the next ones."""

    def __init__(self, answer: Json) -> None:
        self._answer = answer

    @property
    def objects(self) -> list[Json]:
        """The objects; those of built-in kinds have no apiVersion and kind."""
        return [mapping(each) for each in sequence(self._answer.get("items"))]

    @property
    def continue_token(self) -> str | None:
        """The token of the next page; None on the last one."""
        return text(metadata_of(self._answer).get("continue")) or None

    @property
    def version(self) -> str:
        """The resource version from which a watch continues after this list."""
        return text(metadata_of(self._answer).get("resourceVersion"))


_MANAGED: Final[Mapping[str, str]] = {"fieldManager": FIELD_MANAGER}


def _given(parameters: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if value}


# The shortest and the longest wait in seconds: a restarted API server answers within a few seconds, and one that is
# down for longer does not need more than one request every half minute.
FIRST_SECONDS: Final = 0.2
MOST_SECONDS: Final = 30.0

# A server may ask for days by `Retry-After`: it is asked again before.
MOST_ASKED_SECONDS: Final = 300.0


class Backoff:
    """Waits that double from `first` to `most` seconds, each shortened at random by up to half.

    The server's `Retry-After` is a minimum. It is lengthened at random, because all clients that were rejected in the
    same second received the same value.
    """

    def __init__(
        self, *, first: float = FIRST_SECONDS, most: float = MOST_SECONDS, chance: random.Random | None = None
    ) -> None:
        self._first = first
        self._most = most
        self._chance = chance or random.Random()  # noqa: S311 - spreads requests, keeps no secret
        self._attempts = 0

    def succeed(self) -> None:
        """Start again with the shortest wait."""
        self._attempts = 0

    def seconds(self, asked_for: float | None = None) -> float:
        """Return how long to wait after one more failure, at least `asked_for` seconds, up to a limit."""
        # 2 ** 30 times the first wait exceeds every maximum; a larger exponent would overflow a float after some weeks.
        wait = min(self._most, self._first * 2.0 ** min(self._attempts, 30))
        self._attempts += 1
        wait *= self._chance.uniform(0.5, 1.0)
        if asked_for is None:
            return wait
        return max(wait, min(asked_for, MOST_ASKED_SECONDS) * self._chance.uniform(1.0, 1.5))
