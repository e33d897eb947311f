"""A proxy in front of an API server that injects faults: it throttles, fails or loses requests, and breaks watches."""

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from pathlib import Path
from typing import Final

import aiohttp
import yaml
from aiohttp import web

from pulumi_holdfast.controller.kube.access import ApiAccess, from_kubeconfig
from pulumi_holdfast.controller.kube.connection import BearerToken
from pulumi_holdfast.ladder.json import Json

_NOT_OF_JOBS: Final = ("/leases", "/events")


class Fault(StrEnum):
    """What the proxy does with a request."""

    PASS = auto()
    THROTTLE = auto()  #: 429 with Retry-After of a second
    FAIL = auto()  #: 500
    LOSE = auto()  #: it does not reach the API server
    LOSE_ANSWER = auto()  #: the API server handles it, but the response is lost
    LATE = auto()  #: the connection is lost at once, and the API server gets the request seconds later
    TWICE = auto()  #: the API server gets it twice; the client has the first response


@dataclass(frozen=True, kw_only=True)
class ApiRequest:
    """A request: `path` without its query."""

    method: str
    path: str
    watch: bool
    is_dry_run: bool = False

    @property
    def is_write(self) -> bool:
        """Whether it changes an object other than a Lease or an Event."""
        return (
            self.method != "GET"
            and not self.is_dry_run
            and not any(each in self.path for each in _NOT_OF_JOBS)
        )


# Headers that belong to a single connection.
_HOP: Final = frozenset({"Host", "Content-Length", "Transfer-Encoding", "Connection"})
_LARGEST: Final = 2**26
#: How late a late request is.
LATE_SECONDS: Final = 4.0


@dataclass(kw_only=True)
class FaultProxy:
    """A proxy that asks `decide` what to do with each request; `kubeconfig` leads through it, with the user of `access`.

    `writes` counts the requests that change objects other than Leases and Events.
    """

    kubeconfig: Path
    access: ApiAccess = field(repr=False)
    decide: Callable[[ApiRequest], Fault] = lambda _: Fault.PASS
    writes: int = 0
    _watches: set[asyncio.Task[object]] = field(default_factory=set[asyncio.Task[object]])
    _late: set[asyncio.Task[object]] = field(default_factory=set[asyncio.Task[object]])
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def break_watches(self) -> None:
        """Break every watch."""
        for watch in list(self._watches):
            self._loop.call_soon_threadsafe(watch.cancel)

    @contextmanager
    def serving(self) -> Generator[None]:
        """Serve for the length of the block. Raises the error that prevented the start."""
        started, ended = Future[None](), asyncio.Event()

        def serve() -> None:
            try:
                with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                    runner.run(self._serve(started, ended))
            except BaseException as error:
                if started.done():
                    raise
                started.set_exception(error)

        thread = threading.Thread(target=serve, name="fault proxy", daemon=True)
        thread.start()
        started.result()
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(ended.set)
            thread.join()

    async def _serve(self, started: Future[None], ended: asyncio.Event) -> None:
        connector = aiohttp.TCPConnector(ssl=self.access.ssl_context(), limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            bearer = BearerToken(self.access)

            async def answer(request: web.Request) -> web.StreamResponse:
                return await self._answer(request, session, bearer)

            app = web.Application(client_max_size=_LARGEST)
            app.router.add_route("*", "/{path:.*}", answer)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            try:
                await runner.setup()
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                self.kubeconfig.write_text(yaml.safe_dump(_document(int(runner.addresses[0][1]))))
                started.set_result(None)
                await ended.wait()
            finally:
                await runner.cleanup()

    async def _answer(
        self, request: web.Request, session: aiohttp.ClientSession, bearer: BearerToken
    ) -> web.StreamResponse:
        api_request = ApiRequest(
            method=request.method,
            path=request.path,
            watch="watch" in request.query,
            is_dry_run="dryRun" in request.query,
        )
        self.writes += api_request.is_write
        # Read it completely first: `decide` may kill the client that sends it.
        body = await request.read()
        fault = self.decide(api_request)
        match fault:
            case Fault.THROTTLE:
                return _refusal(429, "TooManyRequests", {"Retry-After": "1"})
            case Fault.FAIL:
                return _refusal(500, "InternalError", {})
            case Fault.LOSE:
                return _cut(request)
            case _:
                pass
        headers = {name: value for name, value in request.headers.items() if name not in _HOP}
        headers.update(await bearer.header())

        def ask() -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
            return session.request(
                request.method,
                f"{self.access.server}{request.path_qs}",
                data=body,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None),
            )

        if fault is Fault.LATE:
            self._send_later(ask, LATE_SECONDS)
            return _cut(request)
        try:
            async with ask() as answered:
                if fault is Fault.LOSE_ANSWER:
                    await answered.read()
                    return _cut(request)
                if fault is Fault.TWICE:
                    self._send_later(ask, 0.0)
                return await self._pass_on(request, answered, api_request)
        except (aiohttp.ClientError, OSError):
            return _cut(request)

    def _send_later(
        self, ask: Callable[[], AbstractAsyncContextManager[aiohttp.ClientResponse]], seconds: float
    ) -> None:
        """Send a request after some seconds, whatever becomes of its response."""

        async def send() -> None:
            await asyncio.sleep(seconds)
            with suppress(aiohttp.ClientError, OSError):
                async with ask() as answered:
                    await answered.read()

        task = self._loop.create_task(send())
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _pass_on(
        self, request: web.Request, answered: aiohttp.ClientResponse, api_request: ApiRequest
    ) -> web.StreamResponse:
        kept = {name: value for name, value in answered.headers.items() if name not in _HOP}
        response = web.StreamResponse(status=answered.status, headers=kept)
        await response.prepare(request)
        task = asyncio.current_task()
        if api_request.watch and task is not None:
            self._watches.add(task)
            task.add_done_callback(self._watches.discard)
        async for chunk in answered.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
        return response


@contextmanager
def running_proxy(target: Path, folder: Path, *, token: str | None = None) -> Generator[FaultProxy]:
    """A proxy of the API server of the kubeconfig `target` for the length of the block; its own kubeconfig is in `folder`.

    It authenticates with `token`, without one as the kubeconfig's user.
    """
    access = from_kubeconfig(target)
    if token is not None:
        # A client certificate takes precedence over a token.
        access = replace(access, certificate=None, token=token)
    proxy = FaultProxy(kubeconfig=folder / "proxy-kubeconfig", access=access)
    with proxy.serving():
        yield proxy


def _refusal(status: int, reason: str, headers: dict[str, str]) -> web.Response:
    return web.json_response({"kind": "Status", "reason": reason}, status=status, headers=headers)


def _cut(request: web.Request) -> web.Response:
    """Close the connection without a response."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _document(port: int) -> Json:
    return {
        "current-context": "proxy",
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        "clusters": [{"name": "proxy", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "proxy", "user": {}}],
    }
