"""A cloud that answers what the program asks, and in which nothing can be made."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pulumi.runtime import mocks as pulumi_mocks

from tests.support.mocked_program import ListeningMonitor, run_mocked

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.scheduling.json import Json


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


def asked_of(answer: Callable[[str, Json], Json], ask: Callable[[], object], *, stack: str) -> None:
    """Run what asks questions, with a cloud that answers them; a PermissionError is its refusal."""
    mocks = _Answering(answer)
    run_mocked(ask, mocks, ListeningMonitor(mocks), stack=stack)
