"""Health and metrics over HTTP."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
_UNAVAILABLE: Final = 503


@asynccontextmanager
async def serving(
    address: str, port: int, *, is_ready: Callable[[], bool], metrics: Callable[[], bytes]
) -> AsyncGenerator[int]:
    """Serve `/healthz`, `/readyz` and `/metrics` for the length of the block; yields the port.

    Alive is whoever answers. Ready is who has seen all of the cluster once: a replica that stands by is ready too.
    """

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readiness(_: web.Request) -> web.Response:
        if is_ready():
            return web.Response(text="ok")
        return web.Response(status=_UNAVAILABLE, text="the cluster has not been listed yet")

    async def numbers(_: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": _PROMETHEUS})

    app = web.Application()
    app.router.add_get("/healthz", health)
    app.router.add_get("/readyz", readiness)
    app.router.add_get("/metrics", numbers)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address, port)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
