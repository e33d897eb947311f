"""The bearer token of an access: from its file, exchanged if the other cluster's cloud requires it, and cached."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, cast

import aiohttp

from pulumi_holdfast.controller.api.access import ApiAccess, read_token
from pulumi_holdfast.controller.api.token_exchange import AccessToken, ExchangeError, ExchangeRequest, refusal
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
