"""HTTP to one API server: the only module that sends requests to it, with a bearer token that is read or exchanged again in time."""

import asyncio
import json
import logging
import re
import socket
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, cast

import aiohttp

from pulumi_holdfast.controller.kube.access import (
    AccessToken,
    ApiAccess,
    ExchangeError,
    ExchangeRequest,
    read_token,
    refusal,
)
from pulumi_holdfast.controller.kube.client import TOO_LARGE, ApiError, Unreachable
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping

# A kubelet replaces a pod's token long before it expires; the old one stays valid for minutes.
_FILE_SECONDS: Final = 60.0

# A token is renewed when a quarter of its time is left, five minutes at most. Until it expires, it replaces one that cannot be renewed.
_RENEWED_BEFORE: Final = 0.25
_RENEWED_BEFORE_SECONDS: Final = 300.0

# Neither a service that does not answer nor an API server that refuses each token is asked more often than this.
_LEAST_SECONDS: Final = 10.0

# For one request of an exchange, of which Google's has two.
_TIMEOUT_SECONDS: Final = 10.0
_CONNECT_SECONDS: Final = 5.0

_REFUSED: Final = 300

_log = logging.getLogger(__name__)

Clock = Callable[[], float]


class BearerToken:
    """The `Authorization` header of an access. Used from one event loop.

    `clock` counts seconds, `now` those since 1970.
    """

    def __init__(self, access: ApiAccess, *, clock: Clock = time.monotonic, now: Clock = time.time) -> None:
        self._access = access
        self._clock = clock
        self._exchanged = None if access.exchange is None else _ExchangedToken(access, clock, now)
        self._read_at: float | None = None
        self._token = access.token

    async def header(self) -> Mapping[str, str]:
        """Return the header, none for an access by certificate.

        Raises ConfigError if the file cannot be read, ExchangeError if its token cannot be read or exchanged.
        """
        if self._exchanged is not None:
            return {"Authorization": f"Bearer {await self._exchanged.token()}"}
        file = self._access.token_file
        if file is not None and (self._read_at is None or self._clock() - self._read_at >= _FILE_SECONDS):
            self._token = read_token(file)
            self._read_at = self._clock()
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def forget(self) -> None:
        """Read the file, and exchange its token, again next time: the server rejected the token."""
        self._read_at = None
        if self._exchanged is not None:
            self._exchanged.forget()

    async def close(self) -> None:
        """Close the connections to the token services."""
        if self._exchanged is not None:
            await self._exchanged.close()


class _ExchangedToken:
    """The token that an exchange gives for the one in the file, kept until shortly before it expires."""

    def __init__(self, access: ApiAccess, clock: Clock, now: Clock) -> None:
        self._access = access
        self._clock = clock
        self._now = now
        self._session: aiohttp.ClientSession | None = None
        # Requests that come while one is under way wait for it, unless they have a token.
        self._lock = asyncio.Lock()
        self._token = ""
        self._renew_at = self._ends_at = self._tried_at = float("-inf")
        self._failure = "its token is not exchanged yet"

    async def token(self) -> str:
        """Return a token that is valid. Raises ExchangeError."""
        # While one request renews a token that is valid, the others do not wait for a service that may be slow.
        if self._clock() < (self._ends_at if self._lock.locked() else self._renew_at):
            return self._token
        async with self._lock:
            if self._clock() < self._renew_at:
                return self._token
            if self._clock() - self._tried_at >= _LEAST_SECONDS:
                await self._renew()
            if self._clock() < self._ends_at:
                return self._token
            raise ExchangeError(self._failure)

    def forget(self) -> None:
        """Exchange again next time, unless the token has only just been exchanged."""
        if self._clock() - self._tried_at >= _LEAST_SECONDS:
            self._renew_at = self._ends_at = float("-inf")

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _renew(self) -> None:
        began = self._clock()
        try:
            made = await self._exchange()
        except (ConfigError, ExchangeError) as error:
            self._failure = f"its token cannot be exchanged: {error}"
            if self._clock() < self._ends_at:
                _log.warning("%s; the last one is valid for some time", self._failure)
            return
        finally:
            # When it ended: otherwise each request that waited for a slow service would ask it again, one after the other.
            self._tried_at = self._clock()
        self._token = made.token
        before = min(_RENEWED_BEFORE_SECONDS, _RENEWED_BEFORE * made.seconds)
        self._ends_at = began + made.seconds
        self._renew_at = self._ends_at - before
        self._failure = "the exchanged token has expired"

    async def _exchange(self) -> AccessToken:
        exchange, file = self._access.exchange, self._access.token_file
        if exchange is None or file is None:
            raise ExchangeError("the kubeconfig has no tokenFile")
        subject = read_token(file)
        steps = exchange.start(subject, self._now())
        try:
            request = next(steps)
            while True:
                request = steps.send(await self._answer(request, subject))
        except StopIteration as end:
            return cast("AccessToken", end.value)

    async def _answer(self, request: ExchangeRequest, subject: str) -> Json:
        try:
            async with self._posted(request) as answer:
                content = await answer.read()
                if answer.status >= _REFUSED:
                    said = refusal(answer.status, content, (subject, request.bearer or ""))
                    raise ExchangeError(f"{request.host} answers with {said}")
                return mapping(cast("JsonValue", json.loads(content)))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            # Not its text: that of some errors contains what was sent.
            raise ExchangeError(f"{request.host} does not answer ({type(error).__name__})") from None

    @asynccontextmanager
    async def _posted(self, request: ExchangeRequest) -> AsyncGenerator[aiohttp.ClientResponse]:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS, sock_connect=_CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(
                timeout=timeout, headers={"User-Agent": "holdfast-fallback"}
            )
        headers = {"Accept": "application/json", "Content-Type": request.content_type}
        if request.bearer is not None:
            headers["Authorization"] = f"Bearer {request.bearer}"
        async with self._session.post(
            request.url, data=request.body, headers=headers, allow_redirects=False
        ) as answer:
            yield answer


JSON: Final = "application/json"

# Pages of several lists arrive together, each of some megabytes: parsed in one turn they would block the loop for a second.
_LONG_BYTES: Final = 64 * 1024
# Authors choose how long their objects are. One has at most 1.5 MB in etcd, and some times that as JSON. Several are read in
# parts that are parsed in a fraction of a second.
_MOST_BYTES: Final = 8 * 1024 * 1024
_MOST_BYTES_OF_SEVERAL: Final = 2 * 1024 * 1024

_UNAUTHORIZED: Final = 401

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
        self._parsing = asyncio.Lock()

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self._access.server

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
            has_several = (query or {}).get("limit", "1") != "1"
            most = _MOST_BYTES_OF_SEVERAL if has_several else _MOST_BYTES
            document: object = await self._parsed(await _read(answer, most) or b"{}")
            if not isinstance(document, dict):
                raise ValueError("its answer is not a JSON object")  # noqa: TRY004  # as for other answers that cannot be read
            return cast("Json", document)

    async def _parsed(self, content: bytes) -> object:
        """Return a response's JSON. Of long ones one is parsed at a time, and what waits in the event loop comes before the next."""
        if len(content) < _LONG_BYTES:
            return cast("object", json.loads(content))
        async with self._parsing:
            await asyncio.sleep(0)
            return cast("object", json.loads(content))

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


async def _read(answer: aiohttp.ClientResponse, most: int) -> bytes:
    """Return a response's body. Raises ApiError for one that is too long: it is not read to its end."""
    content = bytearray()
    async for chunk in answer.content.iter_any():
        content += chunk
        if len(content) > most:
            message = f"the answer has more than {most} bytes"
            raise ApiError(TOO_LARGE, "RequestEntityTooLarge", message)
    return bytes(content)


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
