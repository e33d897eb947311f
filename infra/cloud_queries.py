"""Asks a cloud what only it knows, and keeps what it does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from holdfast.scheduling.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_LONGEST_REASON: Final = 300


class CloudQueries:
    """Questions to a cloud, each a read. What stays open, because the caller may not ask, is in `unanswered`.

    `credentials` is what they are asked with, as a refusal names it, and `fix` how one comes to better ones.
    """

    def __init__(self, *, credentials: str, fix: str) -> None:
        self._credentials = credentials
        self._fix = fix
        self._unanswered: list[str] = []

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The questions that stayed open, each with the reason."""
        return tuple(self._unanswered)

    def tried(self, question: str, ask: Callable[[], T]) -> T | None:
        """The answer, or None."""
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - the SDKs raise nothing narrower
            self.leave_open(question, error)
            return None

    def needed(self, question: str, ask: Callable[[], T]) -> T:
        """The answer to what the stack must know. Raises ConfigError where there is none."""
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - the SDKs raise nothing narrower
            raise ConfigError(
                [
                    Problem(
                        field=self._credentials,
                        value=f"no answer to {question} ({_reason(error)})",
                        allowed="credentials which may ask it, and make what the stack holds",
                        fix=self._fix,
                    )
                ]
            ) from None

    def leave_open(self, question: str, error: Exception) -> None:
        """Note a question that was not answered."""
        self._unanswered.append(f"{question}: {_reason(error)}")


def _reason(error: Exception) -> str:
    """What the cloud said, without what the SDK and the engine put before it."""
    text = " ".join(str(error).split())
    for marker in (" failed: ", " returned an error: "):
        text = text.partition(marker)[2] or text
    return text[:_LONGEST_REASON]
