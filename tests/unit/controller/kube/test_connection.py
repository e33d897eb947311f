"""Requests over real HTTP: responses, errors, streams, and a server whose address changes."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import web

from pulumi_holdfast.controller.kube.access import ApiAccess
from pulumi_holdfast.controller.kube.client import TOO_LARGE, ApiError, Unreachable
from pulumi_holdfast.controller.kube.connection import Connection, error_of
from pulumi_holdfast.ladder.errors import ConfigError
from tests.support.coroutines import in_event_loop
from tests.support.fakes.http_server import http_server


@asynccontextmanager
async def connected(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], seen: list[tuple[str, int]] | None = None
) -> AsyncGenerator[Connection]:
    """A connection to such a server; `seen` collects methods and statuses."""
    counted = [] if seen is None else seen
    async with http_server(handler) as address:
        connection = Connection(
            lambda: ApiAccess(server=address, token="secret"),
            seen=lambda method, status, _: counted.append((method, status)),
        )
        try:
            yield connection
        finally:
            await connection.close()


@in_event_loop
async def test_a_request_has_body_content_type_and_token() -> None:
    async def echo(request: web.Request) -> web.Response:
        return web.json_response(
            {
                "body": await request.json(),
                "type": request.headers["Content-Type"],
                "who": request.headers["Authorization"],
                "query": dict(request.query),
            }
        )

    seen: list[tuple[str, int]] = []
    async with connected(echo, seen) as connection:
        answer = await connection.request(
            "PATCH", "/x", query={"a": "b"}, body={"n": 1}, content_type="application/json-patch+json"
        )
    assert answer == {
        "body": {"n": 1},
        "type": "application/json-patch+json",
        "who": "Bearer secret",
        "query": {"a": "b"},
    }
    assert seen == [("PATCH", 200)]


@in_event_loop
async def test_an_error_has_the_servers_message() -> None:
    async def throttle(_: web.Request) -> web.Response:
        return web.json_response(
            {"reason": "TooManyRequests", "message": "slow down"}, status=429, headers={"Retry-After": "7"}
        )

    async with connected(throttle) as connection:
        with pytest.raises(ApiError, match="slow down") as refused:
            await connection.request("GET", "/x")
    assert refused.value.is_overload
    assert refused.value.retry_after_seconds == 7


@pytest.mark.parametrize("body", [b"404 page not found\n", b"<html>bad gateway</html>", b"[1]", b"", b"\xff"])
def test_an_error_may_have_any_body(body: bytes) -> None:
    error = error_of(502, "Bad Gateway", body, retry_after_seconds=None)
    assert error.status == 502
    assert str(error)


@in_event_loop
async def test_a_stream_is_split_into_lines() -> None:
    long = b"x" * 3_000_000

    async def pieces(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in (b"one\ntw", b"o\n\nthree\n", long[:2_000_000], long[2_000_000:], b"\n", b"half"):
            await response.write(piece)
            await asyncio.sleep(0)
        return response

    async with connected(pieces) as connection:
        lines = [line async for line in connection.lines("/x", {}, silent_seconds=5)]
    assert lines == [b"one", b"two", b"three", long]


@in_event_loop
async def test_a_silent_stream_times_out() -> None:
    over = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        await over.wait()
        return response

    async with connected(silent) as connection:
        lines = connection.lines("/x", {}, silent_seconds=0.05)
        assert await anext(lines) == b"one"
        with pytest.raises(Unreachable):
            await anext(lines)
        over.set()


@in_event_loop
async def test_a_late_response_times_out() -> None:
    over = asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        await over.wait()
        return web.Response()

    seen: list[tuple[str, int]] = []
    async with connected(slow, seen) as connection:
        with pytest.raises(Unreachable):
            await connection.request("PUT", "/x", seconds=0.05)
        over.set()
    assert seen == [("PUT", 0)]


@in_event_loop
async def test_a_changed_server_address_is_used() -> None:
    async def here(_: web.Request) -> web.Response:
        return web.json_response({"where": "here"})

    async with http_server(here) as there:
        addresses = iter(["http://127.0.0.1:1", there])
        connection = Connection(lambda: ApiAccess(server=next(addresses, there)))
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
            await connection.request("GET", "/x")
        assert await connection.request("GET", "/x") == {"where": "here"}
        await connection.close()


@in_event_loop
async def test_a_temporarily_unreadable_token_is_retried(tmp_path: Path) -> None:
    async def who(request: web.Request) -> web.Response:
        return web.json_response({"who": request.headers.get("Authorization")})

    async with http_server(who) as address:
        token = tmp_path / "token"
        connection = Connection(lambda: ApiAccess(server=address, token_file=token))
        with pytest.raises(Unreachable, match="token"):
            await connection.request("GET", "/x")
        token.write_text("here")
        assert await connection.request("GET", "/x") == {"who": "Bearer here"}
        await connection.close()


def test_an_invalid_access_is_rejected_at_the_start() -> None:
    with pytest.raises(ConfigError, match="PEM"):
        Connection(lambda: ApiAccess(server="https://x", authority=b"nonsense"))


@in_event_loop
async def test_a_redirect_is_not_followed() -> None:
    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/steal"})

    async with connected(elsewhere) as connection:
        with pytest.raises(ApiError) as refused:
            await connection.request("GET", "/x")
    assert refused.value.status == 302


@pytest.mark.parametrize(
    "body",
    [
        b"<html>sign in</html>",
        b'{"a": "\xff"}',
        b"[]",
        b'"x"',
        b'{"n": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
    ],
    ids=["HTML", "not UTF-8", "a list", "a text", "a huge number", "nested deeply"],
)
@in_event_loop
async def test_a_response_that_is_no_json_object_is_an_error_of_its_server(body: bytes) -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(body=body)

    async with connected(page) as connection:
        with pytest.raises(Unreachable):
            await connection.request("GET", "/x")


@in_event_loop
async def test_an_answer_that_is_too_long_is_not_read_to_its_end() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(b"x" * 1_000_000)
        return response

    async with connected(endless) as connection:
        with pytest.raises(ApiError, match="more than 8388608 bytes") as refused:
            await connection.request("GET", "/x")
    assert refused.value.status == TOO_LARGE


@pytest.mark.parametrize("host", ["a..b", ".example.com", "x" * 64 + ".com", "exa mple"])
@in_event_loop
async def test_a_host_that_cannot_be_looked_up_is_an_error_of_its_server(host: str) -> None:
    connection = Connection(lambda: ApiAccess(server=f"https://{host}"))
    with pytest.raises(Unreachable):
        await connection.request("GET", "/x")
    await connection.close()


@pytest.mark.parametrize("wait", ["\u00b2", "9" * 400, "Fri, 31 Dec 1999 23:59:59 GMT"])
@in_event_loop
async def test_a_retry_after_that_is_no_number_of_seconds_is_ignored(wait: str) -> None:
    async def throttle(_: web.Request) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": wait})

    async with connected(throttle) as connection:
        with pytest.raises(ApiError) as refused:
            await connection.request("GET", "/x")
    assert refused.value.retry_after_seconds is None
