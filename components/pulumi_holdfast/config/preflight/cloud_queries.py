"""Runs read-only queries against a cloud, and records those that fail.

The preflight package of each cloud uses it before a training cluster registers its parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import pulumi

from pulumi_holdfast.ladder.errors import ConfigError

T = TypeVar("T")

_MAX_REASON_LENGTH: Final = 300


class CloudQueries:
    """Queries against one cloud.

    `credentials` names the credentials in a problem, and `fix` says how to get better ones. `options` are for the invokes: with
    the provider that the component `parent` has for the cloud.
    """

    def __init__(self, *, credentials: str, fix: str, parent: pulumi.Resource) -> None:
        self.options: Final = pulumi.InvokeOptions(parent=parent)
        self._credentials = credentials
        self._fix = fix
        self._failed: list[str] = []

    @property
    def failed(self) -> tuple[str, ...]:
        """The optional queries that failed, each with the reason."""
        return tuple(self._failed)

    def optional(self, query: str, ask: Callable[[], T]) -> T | None:
        """The result of a query, or None if it fails."""
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - the SDKs raise nothing narrower
            self.record_failure(query, error)
            return None

    def required(self, query: str, ask: Callable[[], T]) -> T:
        """The result of a query that the stack needs. Raises ConfigError if it fails."""
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - the SDKs raise nothing narrower
            raise ConfigError.of(
                field=self._credentials,
                value=f"{query} failed ({_reason(error)})",
                allowed="credentials with permission for it, and for creating the stack's resources",
                fix=self._fix,
            ) from None

    def record_failure(self, query: str, error: Exception) -> None:
        """Record a query that failed."""
        self._failed.append(f"{query}: {_reason(error)}")


def _reason(error: Exception) -> str:
    """The cloud's message, without the prefixes of the SDK and the engine."""
    text = " ".join(str(error).split())
    for marker in (" failed: ", " returned an error: "):
        text = text.partition(marker)[2] or text
    return text[:_MAX_REASON_LENGTH]
