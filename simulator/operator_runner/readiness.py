"""Asks a process whether it is ready."""

import asyncio
import contextlib

ANSWER_SECONDS = 2.0


async def answers(port: int, path: str) -> bool:
    """Whether an HTTP GET of `path` on a loopback port is answered with success, as a kubelet judges it."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            status = await _status(port, path)
    except (OSError, TimeoutError, ValueError, IndexError):
        return False
    return 200 <= status < 400


async def _status(port: int, path: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
