"""Runs programs on Pulumi's mocks, each as if it were the first."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, cast

import pulumi
from pulumi.runtime import mocks as pulumi_mocks
from pulumi.runtime import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from pulumi.runtime.proto import resource_pb2

PROJECT = "holdfast"


class ListeningMonitor(pulumi_mocks.MockMonitor):
    """Passes questions on, in whatever thread they are asked."""

    def Invoke(  # noqa: N802 - the name of the call
        self, request: resource_pb2.ResourceInvokeRequest
    ) -> resource_pb2.ResourceInvokeResponse:
        with loop_of_this_thread():
            return super().Invoke(request)  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK


@contextmanager
def loop_of_this_thread() -> Generator[None]:
    """The mocks open an event loop in each thread that serves them and leave it so."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def run_mocked(
    build: Callable[[], object],
    mocks: pulumi_mocks.Mocks,
    monitor: pulumi_mocks.MockMonitor,
    *,
    stack: str,
    preview: bool = False,
) -> None:
    """Run a program to its end; what it raises is raised from here."""
    # Programs run on the thread's event loop, which any `asyncio.run` before has taken away.
    asyncio.set_event_loop(_main_loop())
    # A stack keeps the transformations that a program registers on it: each program gets a new one.
    settings.set_root_resource(cast("pulumi.Resource", None))
    pulumi.runtime.set_mocks(mocks, project=PROJECT, stack=stack, preview=preview, monitor=monitor)

    def run() -> None:
        build()

    drained = cast("Callable[[], None]", pulumi.runtime.test(run))  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
    drained()


@cache
def _main_loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()
