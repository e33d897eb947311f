"""Tests that are coroutines: they run in an event loop, with real or virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import ParamSpec

from tests.support.fakes.api_server import run_virtually

P = ParamSpec("P")


def in_event_loop(test: Callable[P, Coroutine[object, object, None]]) -> Callable[P, None]:
    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def virtually(test: Callable[P, Coroutine[object, object, None]]) -> Callable[P, None]:
    """Time passes only while everything waits."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_virtually(test(*args, **kwargs))

    return run


async def until(condition: Callable[[], bool], what: str = "", *, seconds: float = 300) -> float:
    """Let time pass until a condition holds; return how long that took."""
    clock = asyncio.get_running_loop().time
    began = clock()
    while not condition():
        assert clock() - began < seconds, f"it did not come about in {seconds} s: {what}"
        await asyncio.sleep(0.05)
    return clock() - began
