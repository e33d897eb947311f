"""The controller's connection to an API server for synchronous code, and the discovery of the server's kinds.

The connection runs in an event loop in a thread.
"""

import asyncio
import queue
import threading
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import wait
from contextlib import aclosing
from functools import cache
from pathlib import Path
from typing import Final

from pulumi_holdfast.controller.kube.access import from_kubeconfig
from pulumi_holdfast.controller.kube.client import ApiError, Kind
from pulumi_holdfast.controller.kube.connection import JSON, Connection
from pulumi_holdfast.controller.kube.objects import objects
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.errors import Cancellation

# ruff: noqa: N818 - the name of the error describes it without the suffix

_MOST_TRIES: Final = 10
# A server that starts or has too much to do says when to ask again. An eviction that a budget blocks is a POST.
_LATER: Final = (429, 503)
_REPEATABLE: Final = ("GET", "DELETE")
# A local API server answers in milliseconds, but a conversion or admission webhook may take 30 s.
_SECONDS: Final = 60.0
# An API server sends a bookmark about every minute; twice that time without any means that the connection is dead.
_SILENT_SECONDS: Final = 150.0
_CLOSE_SECONDS: Final = 5.0


class NoSuchKind(ApiError):
    """The API server does not serve the kind: its CRD is missing or not established yet."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(404, "NoMatch", f"the API server serves no kind {kind} in {api_version}")


@cache
def _event_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of all connections of this process, in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="Kubernetes client", daemon=True).start()
    return loop


def _close(loop: asyncio.AbstractEventLoop, connection: Connection) -> None:
    closed = asyncio.run_coroutine_threadsafe(connection.close(), loop)
    # The process ends in its main thread; other threads that collect garbage may be the loop's own.
    if threading.current_thread() is threading.main_thread():
        wait([closed], _CLOSE_SECONDS)


class ApiServer:
    """Requests and streams to the API server of a kubeconfig's current context. Safe to use from many threads."""

    def __init__(self, kubeconfig: Path) -> None:
        self._loop = _event_loop()
        self._connection = Connection(lambda: from_kubeconfig(kubeconfig))
        weakref.finalize(self, _close, self._loop, self._connection)

    @property
    def address(self) -> str:
        """Where the API server is."""
        return self._connection.server

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonValue = None,
        content_type: str = JSON,
    ) -> Json:
        """Send one request and return the response. Raises ApiError and Unreachable as the connection does.

        After a GET or DELETE, a server that says when is asked again: one with too much to do, or with a kind that is just defined.
        """

        async def answered() -> Json:
            tries = 0
            while True:
                tries += 1
                try:
                    return await self._connection.request(
                        method, path, query=query, body=body, content_type=content_type, seconds=_SECONDS
                    )
                except ApiError as error:
                    after = error.retry_after_seconds
                    is_later = after is not None and error.status in _LATER and method in _REPEATABLE
                    if not is_later or tries == _MOST_TRIES:
                        raise
                    await asyncio.sleep(after or 0)

        return asyncio.run_coroutine_threadsafe(answered(), self._loop).result()

    def lines(self, path: str, query: Mapping[str, str], cancellation: Cancellation) -> Iterator[bytes]:
        """Yield the response's lines until the server ends it.

        Raises KubeCancelled on a cancellation, also while the server is silent.
        """
        found: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

        async def read() -> None:
            async with aclosing(
                self._connection.lines(path, query, silent_seconds=_SILENT_SECONDS)
            ) as stream:
                async for line in stream:
                    found.put(line)

        reading = asyncio.run_coroutine_threadsafe(read(), self._loop)
        reading.add_done_callback(lambda _: found.put(None))
        try:
            with cancellation.running(reading.cancel):
                while (line := found.get()) is not None:
                    yield line
        finally:
            reading.cancel()
        cancellation.refuse_when_cancelled()
        reading.result()


class Discovery:
    """Finds the paths of a kind. Requests each apiVersion once, and again for an unknown kind."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._known: dict[str, Mapping[str, Kind]] = {}

    def find(self, api_version: str, kind: str) -> Kind:
        """Return a kind. Raises NoSuchKind if the server does not serve it yet."""
        with self._lock:
            known = self._known.get(api_version, {}).get(kind)
        if known:
            return known
        fetched = self._fetch(api_version)
        with self._lock:
            self._known[api_version] = fetched
        if kind not in fetched:
            raise NoSuchKind(api_version, kind)
        return fetched[kind]

    def forget(self, api_version: str) -> None:
        """Request this apiVersion again the next time, because one of its CRDs changed."""
        with self._lock:
            self._known.pop(api_version, None)

    def _fetch(self, api_version: str) -> Mapping[str, Kind]:
        try:
            answer = self._server.request("GET", f"/{'apis' if '/' in api_version else 'api'}/{api_version}")
        except ApiError as error:
            if error.is_missing:
                return {}
            raise
        return {
            str(each["kind"]): Kind(
                api_version=api_version,
                name=str(each["kind"]),
                plural=str(each["name"]),
                namespaced=bool(each.get("namespaced")),
            )
            for each in objects(answer.get("resources"))
            if "/" not in str(each["name"])
        }
