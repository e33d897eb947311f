"""An API server's front on this machine that loses, refuses and holds up requests as a test says."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import aiohttp
import yaml
from aiohttp import web

from fallback.kubernetes.access import Bearer, from_kubeconfig

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from scheduling.json import Json

_HOP: Final = frozenset({"Host", "Content-Length", "Transfer-Encoding", "Connection", "Content-Encoding"})


class Fate(StrEnum):
    """What becomes of a request."""

    PASS = "pass"
    THROTTLE = "throttle"  #: 429, to be asked again in a second
    FAIL = "fail"  #: 500
    LOSE = "lose"  #: it never arrives
    LOSE_ANSWER = "lose answer"  #: it is done, and nobody is told


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request: `path` without its query."""

    method: str
    path: str
    watch: bool

    @property
    def is_write(self) -> bool:
        """Whether it is to change an object of a job's, and not a Lease or an Event."""
        return self.method != "GET" and "/leases" not in self.path and "/events" not in self.path


@dataclass
class FaultyApi:
    """The front: `fate` decides about each request; `asked` is all that came, in order."""

    kubeconfig: Path
    fate: Callable[[Asked], Fate] = lambda _: Fate.PASS
    asked: list[Asked] = field(default_factory=list[Asked])
    _watches: set[asyncio.Task[object]] = field(default_factory=set[asyncio.Task[object]])
    _loop: asyncio.AbstractEventLoop | None = None

    def writes(self) -> list[Asked]:
        """What was to change an object."""
        return [each for each in self.asked if each.is_write]

    def end(self, ended: asyncio.Event) -> None:
        """Serve no more."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(ended.set)

    def break_watches(self) -> None:
        """Cut every watch in the middle."""
        if self._loop is not None:
            for watch in list(self._watches):
                self._loop.call_soon_threadsafe(watch.cancel)

    async def serve(self, target: Path, ready: Callable[[int], None], ended: asyncio.Event) -> None:
        """Serve, on a port that `ready` is told, until `ended`."""
        self._loop = asyncio.get_running_loop()
        access = from_kubeconfig(target)
        connector = aiohttp.TCPConnector(ssl=access.ssl_context(), limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:

            async def answer(request: web.Request) -> web.StreamResponse:
                return await self._answer(request, session, access.server, Bearer(access))

            app = web.Application(client_max_size=2**26)
            app.router.add_route("*", "/{path:.*}", answer)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            ready(int(runner.addresses[0][1]))
            await ended.wait()
            await runner.cleanup()

    async def _answer(
        self, request: web.Request, session: aiohttp.ClientSession, server: str, bearer: Bearer
    ) -> web.StreamResponse:
        asked = Asked(method=request.method, path=request.path, watch="watch" in request.query)
        self.asked.append(asked)
        fate = self.fate(asked)
        if fate is Fate.THROTTLE:
            return web.json_response(
                {"kind": "Status", "reason": "TooManyRequests", "message": "slow down"},
                status=429,
                headers={"Retry-After": "1"},
            )
        if fate is Fate.FAIL:
            return web.json_response({"kind": "Status", "reason": "InternalError"}, status=500)
        if fate is Fate.LOSE:
            return _cut(request)
        headers = {name: value for name, value in request.headers.items() if name not in _HOP}
        async with session.request(
            request.method,
            f"{server}{request.path_qs}",
            data=await request.read(),
            headers={**headers, **bearer.header()},
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answered:
            if fate is Fate.LOSE_ANSWER:
                await answered.read()
                return _cut(request)
            return await self._pass_on(request, answered, watch=asked.watch)

    async def _pass_on(
        self, request: web.Request, answered: aiohttp.ClientResponse, *, watch: bool
    ) -> web.StreamResponse:
        kept = {
            name: value for name, value in answered.headers.items() if name not in _HOP - {"Content-Encoding"}
        }
        response = web.StreamResponse(status=answered.status, headers=kept)
        await response.prepare(request)
        task = asyncio.current_task()
        if watch and task is not None:
            self._watches.add(task)
            task.add_done_callback(self._watches.discard)
        async for chunk in answered.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
        return response


def _cut(request: web.Request) -> web.StreamResponse:
    """End the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


@contextmanager
def faulty_api(target: Path, folder: Path) -> Generator[FaultyApi]:
    """A front of the API server of `target` for the length of the block; its kubeconfig is in `folder`."""
    front = FaultyApi(kubeconfig=folder / "faulty-kubeconfig")
    started, ended = threading.Event(), asyncio.Event()

    def ready(port: int) -> None:
        user: Json = {}
        document: Json = {
            "current-context": "front",
            "contexts": [{"name": "front", "context": {"cluster": "front", "user": "front"}}],
            "clusters": [{"name": "front", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "front", "user": user}],
        }
        front.kubeconfig.write_text(yaml.safe_dump(document))
        started.set()

    def serve() -> None:
        asyncio.run(front.serve(target, ready, ended))

    thread = threading.Thread(target=serve, name="faulty API", daemon=True)
    thread.start()
    assert started.wait(20), "the front serves"
    try:
        yield front
    finally:
        front.end(ended)
        thread.join(20)
