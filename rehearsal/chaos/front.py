"""What stands between the controller and the API server, counts what is to be changed, and has the controller killed."""

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import aiohttp
import yaml
from aiohttp import web

from fallback.kubernetes.access import from_kubeconfig
from scheduling.json import Json

# What is about one connection alone.
_HOP: Final = frozenset({"Host", "Content-Length", "Transfer-Encoding", "Connection", "Content-Encoding"})
_NOBODYS: Final = ("/leases", "/events")


@dataclass(kw_only=True)
class Front:
    """Passes requests on, until a write at which somebody is to be killed.

    `kubeconfig` leads through it, as the user that `token` names. `writes` are those that change a job or what belongs to it.
    """

    kubeconfig: Path
    writes: int = 0
    token: str | None = field(default=None, repr=False)
    _deadly: tuple[int, bool, Callable[[], None]] | None = None

    def kill_at(self, write: int, kill: Callable[[], None], *, is_done: bool) -> None:
        """Have `kill` called at the `write`-th write from now; the API server never sees it, or has done it by then."""
        self._deadly = (self.writes + write, is_done, kill)

    def spare(self) -> bool:
        """Kill nobody any more; returns whether somebody would have been."""
        was_deadly, self._deadly = self._deadly is not None, None
        return was_deadly

    async def serve(self, target: Path, ready: Callable[[int], None], ended: asyncio.Event) -> None:
        """Serve on a port that `ready` is told, until `ended`."""
        access = from_kubeconfig(target)
        if self.token:
            # Whoever shows a certificate is whom that names, whatever the token says.
            access = replace(access, certificate=None)
        connector = aiohttp.TCPConnector(ssl=access.ssl_context(), limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:

            async def answer(request: web.Request) -> web.StreamResponse:
                return await self._answer(request, session, access.server)

            app = web.Application(client_max_size=2**26)
            app.router.add_route("*", "/{path:.*}", answer)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            ready(int(runner.addresses[0][1]))
            await ended.wait()
            await runner.cleanup()

    async def _answer(
        self, request: web.Request, session: aiohttp.ClientSession, server: str
    ) -> web.StreamResponse:
        deadly = self._counted(request)
        if deadly is not None and not deadly[0]:
            deadly[1]()
            return _cut(request)
        headers = {name: value for name, value in request.headers.items() if name not in _HOP}
        try:
            async with session.request(
                request.method,
                f"{server}{request.path_qs}",
                data=await request.read(),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None),
            ) as answered:
                if deadly is not None:
                    await answered.read()
                    deadly[1]()
                    return _cut(request)
                return await _pass_on(request, answered)
        except (aiohttp.ClientError, OSError):
            return _cut(request)

    def _counted(self, request: web.Request) -> tuple[bool, Callable[[], None]] | None:
        """Count a request; returns who is to be killed at it, if anybody: after it is done or before, and how."""
        if request.method == "GET" or any(each in request.path for each in _NOBODYS):
            return None
        self.writes += 1
        if self._deadly is None or self._deadly[0] != self.writes:
            return None
        _, is_done, kill = self._deadly
        self._deadly = None
        return is_done, kill


async def _pass_on(request: web.Request, answered: aiohttp.ClientResponse) -> web.StreamResponse:
    kept = {
        name: value for name, value in answered.headers.items() if name not in _HOP - {"Content-Encoding"}
    }
    response = web.StreamResponse(status=answered.status, headers=kept)
    await response.prepare(request)
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
def standing_front(target: Path, token: str | None, folder: Path) -> Generator[Front]:
    """A front of the API server of the kubeconfig `target` for the length of the block.

    `token` is whose requests it passes on; without one they are the kubeconfig's own user's, whose certificate it shows.
    """
    front = Front(kubeconfig=folder / "controller-kubeconfig", token=token)
    started, ended = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    def ready(port: int) -> None:
        front.kubeconfig.write_text(yaml.safe_dump(_document(port, token)))
        started.set()

    def serve() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(front.serve(target, ready, ended))

    thread = threading.Thread(target=serve, name="front of the API server", daemon=True)
    thread.start()
    started.wait()
    try:
        yield front
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()


def _document(port: int, token: str | None) -> Json:
    user: Json = {"token": token} if token else {}
    return {
        "current-context": "front",
        "contexts": [{"name": "front", "context": {"cluster": "front", "user": "front"}}],
        "clusters": [{"name": "front", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "front", "user": user}],
    }
