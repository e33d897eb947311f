"""Lets the API server reach Services: an HTTP CONNECT proxy on a unix socket."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from holdfast.simulator.operator_runner.adaptation import LOOPBACK
from holdfast.simulator.operator_runner.http_head import read_head
from holdfast.simulator.operator_runner.routes import Route

Router = Callable[[str, int], Awaitable[Route]]

_log = logging.getLogger(__name__)


class ConnectProxy:
    """Joins each connection to `host:port` of a Service to the process that `router` names."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def serve(self, socket: Path) -> asyncio.Server:
        """Listen on `socket`, in place of whoever listened there before."""
        socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        socket.unlink(missing_ok=True)
        return await asyncio.start_unix_server(self._handle, str(socket))

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._join(reader, writer)
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            _log.info("a connection from the API server broke: %s", error)
        finally:
            writer.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await read_head(reader)
        host, _, port = head.target.rpartition(":")
        route = (
            await self._router(host.strip("[]"), int(port))
            if head.method == "CONNECT"
            else Route(reason=head.method)
        )
        if route.port is None:
            _log.warning("no way to %s: %s", head.target, route.reason)
            await _answer(writer, f"502 {route.reason}")
            return
        try:
            upstream = await asyncio.open_connection(LOOPBACK, route.port)
        except OSError as error:
            _log.warning("no way to %s: %s", head.target, error)
            await _answer(writer, f"502 {error}")
            return
        await _answer(writer, "200 Connection established")
        await _pump_both((reader, writer), upstream)


async def _answer(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
    await writer.drain()


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _pump_both(one: Stream, other: Stream) -> None:
    try:
        await asyncio.gather(_pump(one[0], other[1]), _pump(other[0], one[1]))
    finally:
        other[1].close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(64 * 1024):
        writer.write(data)
        await writer.drain()
    # The other direction may go on: say only that this one is over.
    with contextlib.suppress(OSError):
        writer.write_eof()
