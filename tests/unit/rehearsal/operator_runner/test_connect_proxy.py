"""Calls of the API server to a Service reach its process, or fail with a reason."""

import asyncio
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.operator_runner.connect_proxy import Backend, ConnectProxy, Route, route
from tests.support.builders.operator_pods import backend, pod, service


def test_service_routes_to_ready_selected_pods() -> None:
    at_40_000 = [backend(local_port=40_000)]
    for target in ("http", 8080):
        found = route("10.0.0.7", 443, [service(target=target)], at_40_000)
        assert found.port == 40_000
    found = route("10.0.0.7", 8080, [service(port=8080, target=None)], at_40_000)
    assert found.port == 40_000
    backends = [backend(ready=False, local_port=1), backend(ready=True, local_port=2)]
    assert route("10.0.0.7", 443, [service()], backends).port == 2
    found = route("10.0.0.7", 443, [service(selector={})], [backend()])
    assert found.port is None


@pytest.mark.parametrize(
    ("host", "port", "behind", "reason"),
    [
        ("10.0.0.8", 443, backend(), "no Service has the address 10.0.0.8"),
        ("10.0.0.7", 80, backend(), "Service jobset-system/webhook has no port 80"),
        ("10.0.0.7", 443, backend(ready=False), "none of 1 pods of Service jobset-system/webhook is ready"),
        ("10.0.0.7", 443, backend(of=pod(namespace="other")), "none of 0 pods"),
        ("10.0.0.7", 443, backend(of=pod(labels={"app.kubernetes.io/name": "x"})), "none of 0 pods"),
    ],
)
def test_unserved_destination_has_a_reason(host: str, port: int, behind: Backend, reason: str) -> None:
    found = route(host, port, [service()], [behind])
    assert found.port is None
    assert reason in found.reason


async def through_proxy(socket: Path, answer: Route, request: bytes) -> bytes:
    """Send `request` through a proxy that routes everything to `answer`; returns the response."""

    async def route(_host: str, _port: int) -> Route:
        return answer

    server = await ConnectProxy(route).serve(socket)
    reader, writer = await asyncio.open_unix_connection(str(socket))
    writer.write(request)
    writer.write_eof()
    response = await reader.read()
    writer.close()
    server.close()
    return response


def test_connection_is_forwarded_in_both_directions(tmp_path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    async def run() -> bytes:
        upstream = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = int(upstream.sockets[0].getsockname()[1])
        response = await through_proxy(
            tmp_path / "s", Route(port=port), b"CONNECT 10.0.0.7:443 HTTP/1.1\r\n\r\nhello"
        )
        upstream.close()
        return response

    assert asyncio.run(run()) == b"HTTP/1.1 200 Connection established\r\n\r\nHELLO"


def test_destination_without_a_process_gets_502(tmp_path: Path) -> None:
    response = asyncio.run(
        through_proxy(tmp_path / "s", Route(reason="no process"), b"CONNECT 10.0.0.8:1 HTTP/1.1\r\n\r\n")
    )
    assert response == b"HTTP/1.1 502 no process\r\n\r\n"
    response = asyncio.run(
        through_proxy(tmp_path / "s", Route(port=1), b"CONNECT 10.0.0.7:443 HTTP/1.1\r\n\r\n")
    )
    assert response.startswith(b"HTTP/1.1 502 ")
