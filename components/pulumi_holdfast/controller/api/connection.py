"""HTTP to one API server: the only module that sends requests to it."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, cast

import aiohttp

from pulumi_holdfast.controller.api.access import ApiAccess
from pulumi_holdfast.controller.api.client import ApiError, Unreachable
from pulumi_holdfast.controller.api.exchanged_token import BearerToken
from pulumi_holdfast.controller.api.token_exchange import ExchangeError
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json, JsonValue

JSON: Final = "application/json"

_CONNECT_SECONDS: Final = 5.0
_UNAUTHORIZED: Final = 401
_REFUSED: Final = 300

# A Retry-After may also be a date, which is not read.
_RETRY_AFTER: Final = re.compile(r"[0-9]{1,6}", re.ASCII)

# A load balancer that drops a connection, or a machine that vanishes, sends nothing: the kernel sends a keep-alive
# after this many seconds of silence, and closes the connection after three without an answer.
_SILENT_SECONDS: Final = 20
_ASK_SECONDS: Final = 5
_ASK_TIMES: Final = 3


class Connection:
    """Requests and streams to one API server. Used from one event loop.

    `load` is called again when the server does not answer, since its address or certificates may have changed; its errors
    are raised only at the start. `seen` is called for each response: method, status (0 without one) and seconds.
    """

    def __init__(
        self,
        load: Callable[[], ApiAccess],
        *,
        seen: Callable[[str, int, float], None] = lambda _method, _status, _seconds: None,
    ) -> None:
        self._load = load
        self._seen = seen
        self._access = load()
        self._ssl = self._access.ssl_context()
        self._bearer = BearerToken(self._access)
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close every connection; open streams break."""
        await self._bearer.close()
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonValue = None,
        content_type: str = JSON,
        seconds: float = 30.0,
    ) -> Json:
        """Send one request and return the response's JSON; times out after `seconds`.

        Raises ApiError with the server's message when it rejects the request, Unreachable without a complete response
        that is a JSON object: an invalid response of another cluster must not affect this one.
        """
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=min(seconds, _CONNECT_SECONDS))
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        async with self._answer(method, path, query, data, content_type, timeout) as answer:
            document: object = json.loads(await answer.read() or b"{}")
            if not isinstance(document, dict):
                raise ValueError("its answer is not a JSON object")  # noqa: TRY004  # as for other answers that cannot be read
            return cast("Json", document)

    async def lines(
        self, path: str, query: Mapping[str, str], *, silent_seconds: float
    ) -> AsyncGenerator[bytes]:
        """Yield the response line by line until the server ends it.

        Raises ApiError when the server rejects the request, Unreachable when the stream breaks or is silent for `silent_seconds`.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=silent_seconds)
        async with self._answer("GET", path, query, None, JSON, timeout) as answer:
            rest = b""
            # Not the stream's own readline: it rejects lines longer than its buffer, and objects may be over a megabyte.
            async for chunk in answer.content.iter_any():
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    if line:
                        yield line

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        started = asyncio.get_running_loop().time()
        status = 0
        try:
            # Around the exchange of a token, too: no write may be sent when another replica may lead.
            async with asyncio.timeout(timeout.total):
                headers = {"Accept": JSON, "Content-Type": content_type, **await self._bearer.header()}
                async with self._opened().request(
                    method,
                    f"{self._access.server}{path}",
                    params=query,
                    data=data,
                    headers=headers,
                    timeout=timeout,
                    allow_redirects=False,
                ) as answer:
                    status = answer.status
                    if status >= _REFUSED:
                        raise self._api_error(answer, await answer.read())
                    yield answer
        except (
            aiohttp.ClientError,
            TimeoutError,
            OSError,
            ValueError,
            RecursionError,
            ConfigError,
            ExchangeError,
        ) as error:
            # A ValueError: an answer that is not JSON or not UTF-8, or an address whose host cannot be encoded.
            status = 0
            await self._look_again()
            raise Unreachable(self._access.server, str(error) or type(error).__name__) from error
        finally:
            self._seen(method, status, asyncio.get_running_loop().time() - started)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=self._ssl, limit=0, socket_factory=_keepalive_socket)
            self._session = aiohttp.ClientSession(
                connector=connector, headers={"User-Agent": "holdfast-fallback"}, auto_decompress=True
            )
        return self._session

    async def _look_again(self) -> None:
        try:
            access = self._load()
            context = access.ssl_context() if access != self._access else self._ssl
        except ConfigError:
            return  # the files are being replaced: keep the previous ones
        if access != self._access:
            session, bearer = self._session, self._bearer
            self._access, self._ssl, self._session = access, context, None
            self._bearer = BearerToken(access)
            await bearer.close()
            if session is not None:
                await session.close()

    def _api_error(self, answer: aiohttp.ClientResponse, content: bytes) -> ApiError:
        if answer.status == _UNAUTHORIZED:
            self._bearer.forget()
        wait = answer.headers.get("Retry-After", "")
        return error_of(
            answer.status,
            answer.reason or "",
            content,
            retry_after_seconds=float(wait) if _RETRY_AFTER.fullmatch(wait) else None,
        )


def error_of(status: int, reason: str, content: bytes, *, retry_after_seconds: float | None) -> ApiError:
    """Return the error of a rejected request; its body may be anything."""
    try:
        document: object = json.loads(content)
    except ValueError:
        # The API server answers unknown paths with the text "404 page not found", proxies answer errors with HTML.
        document = {"message": content[:300].decode(errors="replace").strip()}
    words = cast("dict[str, object]", document) if isinstance(document, dict) else {}
    return ApiError(
        status,
        str(words.get("reason") or reason),
        str(words.get("message") or ""),
        retry_after_seconds=retry_after_seconds,
    )


def _keepalive_socket(address: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
    made = socket.socket(*address[:3])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", _SILENT_SECONDS),
        ("TCP_KEEPINTVL", _ASK_SECONDS),
        ("TCP_KEEPCNT", _ASK_TIMES),
        # Keep-alives are not sent while sent data is unacknowledged, so that time is limited too.
        ("TCP_USER_TIMEOUT", 1000 * (_SILENT_SECONDS + _ASK_TIMES * _ASK_SECONDS)),
    ):
        if hasattr(socket, option):  # macOS has other names for some of them
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made
