"""Connects the API server to Services and kubelets: an HTTP CONNECT proxy on a unix socket, and its routes."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.operator_runner.controllers import LOOPBACK
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import container_ports, identity_of, main_container

HEAD_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A pod with a process: `ports` maps container ports to local ports while the process runs."""

    pod: Json
    ports: Mapping[int, int]
    ready: bool


@dataclass(frozen=True, kw_only=True)
class Route:
    """The local port or unix socket for a connection; neither, with a `reason`, if there is none."""

    port: int | None = None
    socket: Path | None = None
    reason: str = ""


def route(host: str, port: int, services: Sequence[Json], backends: Sequence[Backend]) -> Route:
    """Find a ready process for `port` of the Service whose cluster IP is `host`, like kube-proxy."""
    service = next((each for each in services if host in _addresses(each)), None)
    if service is None:
        return Route(reason=f"no Service has the address {host}")
    metadata = mapping(service.get("metadata"))
    name = f"Service {metadata.get('namespace')}/{metadata.get('name')}"
    entry = next((each for each in _ports(service) if each.get("port") == port), None)
    if entry is None:
        return Route(reason=f"{name} has no port {port}")
    behind = [each for each in backends if _selects(service, each.pod)]
    for backend in behind:
        local = backend.ports.get(_target(entry, backend.pod))
        if backend.ready and local is not None:
            return Route(port=local)
    return Route(reason=f"none of {len(behind)} pods of {name} is ready on port {port}")


def _addresses(service: Json) -> Sequence[str]:
    spec = mapping(service.get("spec"))
    return [str(each) for each in (*sequence(spec.get("clusterIPs")), spec.get("clusterIP"))]


def _ports(service: Json) -> Sequence[Json]:
    return [mapping(each) for each in sequence(mapping(service.get("spec")).get("ports"))]


def _selects(service: Json, pod: Json) -> bool:
    selector = mapping(mapping(service.get("spec")).get("selector"))
    labels = mapping(mapping(pod.get("metadata")).get("labels"))
    same_namespace = mapping(service.get("metadata")).get("namespace") == identity_of(pod).namespace
    return (
        same_namespace and bool(selector) and all(labels.get(key) == value for key, value in selector.items())
    )


def _target(entry: Json, pod: Json) -> int:
    target = entry.get("targetPort", entry.get("port"))
    if isinstance(target, str):
        return container_ports(main_container(pod)).get(target, 0)
    return target if isinstance(target, int) else 0


Router = Callable[[str, int], Awaitable[Route]]

_log = logging.getLogger(__name__)


class ConnectProxy:
    """Forwards each connection to `host:port` of a Service to the process that `router` returns."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def serve(self, socket: Path) -> asyncio.Server:
        """Listen on `socket`; replace an existing socket file."""
        socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        socket.unlink(missing_ok=True)
        return await asyncio.start_unix_server(self._handle, str(socket))

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._forward(reader, writer)
        except (OSError, EOFError, TimeoutError, ValueError, asyncio.LimitOverrunError) as error:
            _log.info("a connection from the API server failed: %s", error)
        finally:
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
        method, target, _ = head.decode("latin-1").split(" ", 2)
        host, _, port = target.rpartition(":")
        route = (
            await self._router(host.strip("[]"), int(port)) if method == "CONNECT" else Route(reason=method)
        )
        if route.port is None and route.socket is None:
            _log.warning("no route to %s: %s", target, route.reason)
            await _answer(writer, f"502 {route.reason}")
            return
        try:
            upstream = await (
                asyncio.open_connection(LOOPBACK, route.port)
                if route.socket is None
                else asyncio.open_unix_connection(route.socket)
            )
        except OSError as error:
            _log.warning("no route to %s: %s", target, error)
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
    # Close only this direction: the other one may continue.
    with contextlib.suppress(OSError):
        writer.write_eof()
