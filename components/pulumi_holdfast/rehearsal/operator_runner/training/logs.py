"""The logs of training pods, and the endpoint of a kubelet that `kubectl logs` reads them from.

It listens on a unix socket: the API server reaches it through the proxy of the operator runner, other users do not.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from pulumi_holdfast.controller.kube.objects import name_of, namespace_of, uid_of
from pulumi_holdfast.ladder.json import Json

_FOLDER: Final = "pods"
_HEAD_SECONDS: Final = 10.0
_FOLLOW_SECONDS: Final = 0.2
_CHUNK: Final = 64 * 1024

_log = logging.getLogger(__name__)


def log_of(logs: Path, pod: Json, container: str, attempt: int) -> Path:
    """The log of one attempt of a container, where a kubelet has it below its folder of logs."""
    return logs / _FOLDER / f"{namespace_of(pod)}_{name_of(pod)}_{uid_of(pod)}" / container / f"{attempt}.log"


def attempts_of(logs: Path, namespace: str, pod: str, container: str) -> list[Path]:
    """The logs of a container, first attempt first; of the latest pod of that name."""
    found = [(path.stat().st_mtime, path) for path in (logs / _FOLDER).glob(f"{namespace}_{pod}_*")]
    folders = [path / container for _, path in sorted(found)[-1:]]
    return sorted((path for each in folders for path in each.glob("*.log")), key=lambda path: int(path.stem))


def logs_of_namespace(logs: Path, namespace: str) -> Iterator[tuple[str, Path]]:
    """The uid of each pod of a namespace that has run here, and each of its logs."""
    for path in (logs / _FOLDER).glob(f"{namespace}_*/*/*.log"):
        yield path.parts[-3].rpartition("_")[2], path


class LogServer:
    """Serves the logs; `is_running` says whether a pod, by namespace and name, may write more."""

    def __init__(self, logs: Path, is_running: Callable[[str, str], bool]) -> None:
        self._logs = logs
        self._is_running = is_running

    async def serve(self, socket: Path, certificate: Path, key: Path) -> asyncio.Server:
        """Listen on `socket`. The API server does not check a kubelet's certificate here, but wants TLS."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        socket.unlink(missing_ok=True)
        return await asyncio.start_unix_server(self.handle, str(socket), ssl=context)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of the API server."""
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
            await self._answer(head.decode("latin-1").split(" ", 2)[1], writer)
        except (OSError, EOFError, TimeoutError, ValueError, IndexError, asyncio.LimitOverrunError) as error:
            _log.info("a reader of logs is gone: %s", error)
        finally:
            with contextlib.suppress(OSError):
                writer.close()

    async def _answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(target)
        match parts.path.strip("/").split("/"):
            case ["containerLogs", namespace, pod, container]:
                query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
                found = attempts_of(self._logs, namespace, pod, container)
                log = next(iter(found[::-1][query.get("previous") == "true" :]), None)
            case _:
                namespace, pod, query, log = "", "", dict[str, str](), None
        if log is None:
            text = b"this pod has no such log here: a simulated pod runs no program\n"
            writer.write(_head("404 Not Found", len(text)) + text)
            await writer.drain()
            return
        writer.write(_head("200 OK", None))
        await self._send(log, query, writer, lambda: self._is_running(namespace, pod))

    async def _send(
        self, log: Path, query: Mapping[str, str], writer: asyncio.StreamWriter, may_grow: Callable[[], bool]
    ) -> None:
        with log.open("rb") as file:
            if "tailLines" in query:
                file.seek(_start_of_tail(file.read(), int(query["tailLines"])))
            left = int(query.get("limitBytes", 1 << 62))
            while left > 0:
                is_live = query.get("follow") == "true" and may_grow()
                while (chunk := file.read(min(_CHUNK, left))) and left > 0:
                    writer.write(chunk)
                    left -= len(chunk)
                    await writer.drain()
                if not is_live:
                    return
                await asyncio.sleep(_FOLLOW_SECONDS)


def _start_of_tail(text: bytes, lines: int) -> int:
    kept = text.splitlines(keepends=True)[-lines:] if lines else []
    return len(text) - sum(map(len, kept))


def _head(status: str, length: int | None) -> bytes:
    size = "" if length is None else f"Content-Length: {length}\r\n"
    return f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\n{size}Connection: close\r\n\r\n".encode()
