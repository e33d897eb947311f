"""A connection to the API server in memory on which requests and their answers are lost."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping

from pulumi_holdfast.controller.kube.client import ApiError, Unreachable
from pulumi_holdfast.ladder.json import Json, JsonValue
from tests.support.fakes.api_server import FakeApi


class FaultyConnection:
    """The requests of one process: `fault` may lose one on its connection there ("lose") or its answer ("lose answer")."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.is_dead = False
        self.fault: Callable[[str, str], str] = lambda _method, _path: "pass"

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonValue = None,
        content_type: str = "application/json",
        seconds: float = 30.0,
    ) -> Json:
        await asyncio.sleep(0.003)
        fault = "lose" if self.is_dead else self.fault(method, path)
        if fault == "lose":
            raise Unreachable("fake", "lost")
        if fault == "throttle":
            raise ApiError(429, "TooManyRequests", "slow down", retry_after_seconds=1)
        if fault == "fail":
            raise ApiError(500, "InternalError", "etcd is gone")
        if fault == "conflict":
            raise ApiError(409, "Conflict", "the object has been modified")
        answer = await self.api.request(
            method, path, query=query, body=body, content_type=content_type, seconds=seconds
        )
        await asyncio.sleep(0.003)
        if fault == "lose answer" or self.is_dead:
            raise Unreachable("fake", "the answer was lost")
        return answer

    def lines(self, path: str, query: Mapping[str, str], *, silent_seconds: float) -> AsyncGenerator[bytes]:
        return self.api.lines(path, query, silent_seconds=silent_seconds)
