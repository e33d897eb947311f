"""The bearer token of an access: read from its file, exchanged over real HTTP, kept, renewed and forgotten."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from aiohttp import web

from pulumi_holdfast.controller.kube.access import ApiAccess, EntraExchange, ExchangeError, GoogleExchange
from pulumi_holdfast.controller.kube.client import ApiError, Unreachable
from pulumi_holdfast.controller.kube.connection import BearerToken, Connection
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json
from tests.support.coroutines import in_event_loop
from tests.support.fakes.http_server import http_server

_JWT: Final = "urn:ietf:params:oauth:token-type:jwt"
_OF_AN_HOUR: Final = 3600


@in_event_loop
async def test_a_replaced_token_is_read_again(tmp_path: Path) -> None:
    token, now = tmp_path / "token", [0.0]
    token.write_text("first\n")
    bearer = BearerToken(ApiAccess(server="s", token_file=token), clock=lambda: now[0])
    assert await bearer.header() == {"Authorization": "Bearer first"}
    token.write_text("second")
    assert await bearer.header() == {"Authorization": "Bearer first"}
    now[0] = 61
    assert await bearer.header() == {"Authorization": "Bearer second"}
    token.write_text("third")
    bearer.forget()
    assert await bearer.header() == {"Authorization": "Bearer third"}
    token.unlink()
    now[0] = 200
    with pytest.raises(ConfigError, match="token"):
        await bearer.header()


@in_event_loop
async def test_an_access_by_certificate_sends_no_token() -> None:
    assert await BearerToken(ApiAccess(server="s")).header() == {}


@dataclass
class Services:
    """What exchanges tokens, and an API server behind it: each answers as the test lets it."""

    address: str = ""
    status: int = 200
    seconds: float = _OF_AN_HOUR
    body: bytes | None = None
    rejected: set[str] = field(default_factory=set[str])
    received: list[str] = field(default_factory=list[str])
    made: int = 0
    reached: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/api"):
            self.reached += 1
            bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
            status = 401 if bearer in self.rejected else 200
            return web.json_response({"who": bearer, "message": "Unauthorized"}, status=status)
        form = await request.post()
        self.received.append(str(form.get("client_assertion")))
        await self.gate.wait()
        if self.body is not None:
            return web.Response(status=self.status, body=self.body, content_type="application/json")
        self.made += 1
        return web.json_response(
            {"access_token": f"made-{self.made}", "expires_in": self.seconds, "token_type": "Bearer"}
        )

    def exchange(self) -> EntraExchange:
        return EntraExchange(authority=self.address, tenant_id="t", client_id="c", scope="s/.default")


@asynccontextmanager
async def services(**given: object) -> AsyncGenerator[Services]:
    """Both, on this machine."""
    found = Services(**given)  # pyright: ignore[reportArgumentType]  # a test names fields
    found.gate.set()
    async with http_server(found.answer) as found.address:
        yield found


@asynccontextmanager
async def connected(
    folder: Path, *exchanges: EntraExchange | None, server: str = "https://there"
) -> AsyncGenerator[Connection]:
    """A connection to an API server with the token `of-home`; each read of its kubeconfig has the next exchange."""
    (folder / "token").write_text("of-home")
    each = iter(exchanges)
    connection = Connection(
        lambda: ApiAccess(server=server, token_file=folder / "token", exchange=next(each, exchanges[-1]))
    )
    try:
        yield connection
    finally:
        await connection.close()


@dataclass
class Exchanged:
    """A bearer token with a clock that a test moves."""

    bearer: BearerToken
    clock: list[float]

    async def token(self) -> str:
        return (await self.bearer.header())["Authorization"].removeprefix("Bearer ")


@asynccontextmanager
async def exchanged(found: Services, folder: Path) -> AsyncGenerator[Exchanged]:
    (folder / "token").write_text("of-home\n")
    clock = [1000.0]
    access = ApiAccess(server="s", token_file=folder / "token", exchange=found.exchange())
    bearer = BearerToken(access, clock=lambda: clock[0], now=lambda: clock[0])
    try:
        yield Exchanged(bearer=bearer, clock=clock)
    finally:
        await bearer.close()


@in_event_loop
async def test_a_token_is_exchanged_once_and_renewed_before_it_expires(tmp_path: Path) -> None:
    async with services() as found, exchanged(found, tmp_path) as each:
        first = await asyncio.gather(*(each.token() for _ in range(5)))
        assert first == ["made-1"] * 5
        each.clock[0] += _OF_AN_HOUR - 301
        assert await each.token() == "made-1"
        (tmp_path / "token").write_text("of-home-later")
        each.clock[0] += 2
        assert await each.token() == "made-2"
        assert found.received == ["of-home", "of-home-later"]


@in_event_loop
async def test_a_token_of_two_minutes_is_not_renewed_with_each_request(tmp_path: Path) -> None:
    async with services(seconds=120) as found, exchanged(found, tmp_path) as each:
        await each.token()
        each.clock[0] += 89
        assert await each.token() == "made-1"
        each.clock[0] += 2
        assert await each.token() == "made-2"


@in_event_loop
async def test_a_token_that_cannot_be_renewed_is_used_until_it_expires(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with services() as found, exchanged(found, tmp_path) as each:
        await each.token()
        found.status, found.body = 503, b"<html>of-home</html>"
        each.clock[0] += _OF_AN_HOUR - 60
        assert await each.token() == "made-1"
        assert "503" in caplog.text
        subject = (tmp_path / "token").rename(tmp_path / "replaced")
        each.clock[0] += 11
        assert await each.token() == "made-1"
        subject.rename(tmp_path / "token")
        each.clock[0] += 50
        with pytest.raises(ExchangeError, match="status 503"):
            await each.token()
        found.body = None
        each.clock[0] += 11
        assert await each.token() == "made-2"


@in_event_loop
async def test_requests_with_a_valid_token_do_not_wait_for_its_renewal(tmp_path: Path) -> None:
    async with services() as found, exchanged(found, tmp_path) as each:
        await each.token()
        each.clock[0] += _OF_AN_HOUR - 60
        found.gate.clear()
        renewing = asyncio.create_task(each.token())
        while len(found.received) < 2:
            await asyncio.sleep(0.01)
        waiting = asyncio.create_task(each.token())
        done, _ = await asyncio.wait([waiting], timeout=5)
        found.gate.set()
        assert done
        assert await waiting == "made-1"
        assert await renewing == "made-2"


@in_event_loop
async def test_a_service_that_refuses_is_asked_every_ten_seconds_at_most(tmp_path: Path) -> None:
    refusal = {"error": "invalid_client", "error_description": "AADSTS700213: no match for of-home"}
    body = json.dumps(refusal).encode()
    async with services(status=401, body=body) as found, exchanged(found, tmp_path) as each:
        for _ in range(20):
            with pytest.raises(ExchangeError, match="invalid_client: AADSTS700213") as failed:
                await each.token()
            each.clock[0] += 1
            assert "of-home" not in str(failed.value)
    assert len(found.received) == 2


@in_event_loop
async def test_requests_that_wait_for_a_service_that_does_not_answer_fail_together(tmp_path: Path) -> None:
    async with services(status=503, body=b"") as found, exchanged(found, tmp_path) as each:
        found.gate.clear()
        waiting = asyncio.gather(*(each.token() for _ in range(3)), return_exceptions=True)
        while not found.received:
            await asyncio.sleep(0.01)
        each.clock[0] += 20
        found.gate.set()
        assert all(isinstance(failed, ExchangeError) for failed in await waiting)
        assert len(found.received) == 1


@in_event_loop
async def test_a_request_is_not_sent_when_its_time_has_passed_in_the_exchange(tmp_path: Path) -> None:
    async with services() as found:
        found.gate.clear()
        async with connected(tmp_path, found.exchange(), server=f"{found.address}/api") as connection:
            began = asyncio.get_running_loop().time()
            with pytest.raises(Unreachable):
                await connection.request("PATCH", "/x", body={}, seconds=0.2)
            took = asyncio.get_running_loop().time() - began
        found.gate.set()
    assert took < 5
    assert found.reached == 0


@in_event_loop
async def test_a_token_that_the_api_server_rejects_is_exchanged_again_but_not_with_each_request(
    tmp_path: Path,
) -> None:
    async with (
        services() as found,
        connected(tmp_path, found.exchange(), server=f"{found.address}/api") as connection,
    ):
        assert (await connection.request("GET", "/x"))["who"] == "made-1"
        found.rejected = {"made-1", "made-2"}
        for _ in range(3):
            with pytest.raises(ApiError):
                await connection.request("GET", "/x")
        assert found.made == 1, "it was exchanged a moment before: another would be rejected as well"

    async with services() as found, exchanged(found, tmp_path) as each:
        await each.token()
        each.clock[0] += 11
        each.bearer.forget()
        assert await each.token() == "made-2"


_BAD: Final[dict[str, tuple[int, bytes, str]]] = {
    "no token": (200, b"{}", "no access_token"),
    "no time": (200, b'{"access_token": "x"}', "how long"),
    "a time beyond all": (200, b'{"access_token": "x", "expires_in": %s}' % (b"9" * 400), "how long"),
    "no JSON": (200, b"<html>", "does not answer"),
    "a list": (200, b"[]", "no access_token"),
    "a redirect": (302, b"", "status 302"),
    "a refusal without text": (500, b"\xff", "status 500"),
    "a refusal of Google": (
        403,
        b'{"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "denied"}}',
        "denied",
    ),
}


@pytest.mark.parametrize("what", _BAD)
@in_event_loop
async def test_an_exchange_that_fails_is_an_unreachable_cluster(tmp_path: Path, what: str) -> None:
    status, body, said = _BAD[what]
    async with (
        services(status=status, body=body) as found,
        connected(tmp_path, found.exchange()) as connection,
    ):
        with pytest.raises(Unreachable, match=said) as failed:
            await connection.request("GET", "/x")
    assert "of-home" not in str(failed.value)


_NOWHERE: Final = EntraExchange(authority="http://127.0.0.1:1", tenant_id="t", client_id="c", scope="s")


@pytest.mark.parametrize(
    ("file", "said"),
    [("token", "does not answer"), (None, "no tokenFile"), ("gone", "readable file")],
    ids=["no service", "no file", "a file that is gone"],
)
@in_event_loop
async def test_an_exchange_without_its_service_or_its_file_is_an_unreachable_cluster(
    tmp_path: Path, file: str | None, said: str
) -> None:
    (tmp_path / "token").write_text("of-home")
    path = None if file is None else tmp_path / file
    connection = Connection(lambda: ApiAccess(server="https://there", token_file=path, exchange=_NOWHERE))
    with pytest.raises(Unreachable, match=said):
        await connection.request("GET", "/x")
    await connection.close()


@in_event_loop
async def test_a_kubeconfig_with_another_exchange_is_read_after_a_failure(tmp_path: Path) -> None:
    async with (
        services() as found,
        connected(
            tmp_path, _NOWHERE, _NOWHERE, found.exchange(), server=f"{found.address}/api"
        ) as connection,
    ):
        for _ in range(2):
            with pytest.raises(Unreachable):
                await connection.request("GET", "/x")
        assert (await connection.request("GET", "/x"))["who"] == "made-1"


@in_event_loop
async def test_the_token_of_google_comes_from_two_requests(tmp_path: Path) -> None:
    seen: list[tuple[str, str, Json]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        bearer = request.headers.get("Authorization", "")
        if request.path == "/token":
            form = await request.post()
            seen.append((request.path, bearer, {key: str(value) for key, value in form.items()}))
            return web.json_response({"access_token": "federated", "expires_in": 3600})
        seen.append((request.path, bearer, await request.json()))
        return web.json_response({"accessToken": "of-account", "expireTime": "2026-11-27T16:00:00.5Z"})

    (tmp_path / "token").write_text("of-home")
    clock = [0.0]
    async with http_server(answer) as address:
        google = GoogleExchange(
            audience="//iam/provider",
            subject_token_type=_JWT,
            token_url=f"{address}/token",
            impersonation_url=f"{address}/account:generateAccessToken",
        )
        bearer = BearerToken(
            ApiAccess(server="s", token_file=tmp_path / "token", exchange=google),
            clock=lambda: clock[0],
            now=lambda: 1795795200.5 - 3600,
        )
        assert await bearer.header() == {"Authorization": "Bearer of-account"}
        clock[0] = 3299
        await bearer.header()
        assert len(seen) == 2
        clock[0] = 3301
        await bearer.header()
        await bearer.close()
    (path, sent, form), (impersonated, federated, _) = seen[:2]
    assert (path, sent, form["subject_token"]) == ("/token", "", "of-home")
    assert (impersonated, federated) == ("/account:generateAccessToken", "Bearer federated")
    assert len(seen) == 4
