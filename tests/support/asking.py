"""A cloud that answers what the program asks, and in which nothing can be made."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pulumi
from pulumi.runtime import mocks as pulumi_mocks
from pulumi.runtime import settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulumi.runtime.proto import resource_pb2

    from scheduling.json import Json


class _Answering(pulumi_mocks.Mocks):
    def __init__(self, answer: Callable[[str, Json], Json]) -> None:
        self._answer = answer

    def call(self, args: pulumi_mocks.MockCallArgs) -> tuple[dict[str, object], list[tuple[str, str]]]:
        try:
            return dict(self._answer(args.token, cast("Json", args.args))), []  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
        except PermissionError as denied:
            return {}, [("", str(denied))]

    def new_resource(self, args: pulumi_mocks.MockResourceArgs) -> tuple[str | None, dict[str, object]]:
        raise AssertionError(f"{args.typ} is made, where nothing but questions may be asked")


class _ListeningMonitor(pulumi_mocks.MockMonitor):
    """Passes questions on; the mocks open an event loop in each thread that asks and leave it so."""

    def Invoke(  # noqa: N802 - the name of the call
        self, request: resource_pb2.ResourceInvokeRequest
    ) -> resource_pb2.ResourceInvokeResponse:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            return super().Invoke(request)  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def asked_of(answer: Callable[[str, Json], Json], ask: Callable[[], object], *, stack: str) -> None:
    """Run what asks questions, with a cloud that answers them; a PermissionError is its refusal."""
    settings.set_root_resource(cast("pulumi.Resource", None))
    mocks = _Answering(answer)
    pulumi.runtime.set_mocks(mocks, project="holdfast", stack=stack, monitor=_ListeningMonitor(mocks))

    def run() -> None:
        ask()

    drained = cast("Callable[[], None]", pulumi.runtime.test(run))  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
    drained()
