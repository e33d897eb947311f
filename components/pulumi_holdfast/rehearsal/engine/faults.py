"""Injects failures into the providers: refused creates, and a killed engine."""

import threading
from collections import Counter
from collections.abc import Callable

from pulumi_holdfast.rehearsal.errors import RehearsalError


class CreateRefusedError(RehearsalError):
    """The cloud refused to create a resource, because of `Faults.fail_create`."""


class EngineCrashedError(Exception):
    """The engine was killed during a call, which therefore must not be answered."""


class Faults:
    """Faults to inject; one object serves all simulated providers of a run, on any thread.

    Creates and deletes are counted from 1 over all providers; previews do not count.
    `on_crash` kills the engine; the crash faults require it.
    """

    def __init__(self, *, on_crash: Callable[[], None] | None = None) -> None:
        self._on_crash = on_crash
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._refusals: dict[int, str] = {}
        self._crashes: dict[str, set[int | str]] = {"create": set(), "delete": set()}

    def fail_create(self, n: int, message: str) -> None:
        """Make the n-th create fail with a message, once."""
        self._refusals[n] = message

    def crash_after_create(self, at: int | str) -> None:
        """Kill the engine once the n-th create, or the create of a URN, is done but not yet answered."""
        self._order_crash("create", at)

    def crash_after_delete(self, at: int | str) -> None:
        """Kill the engine once the n-th delete, or the delete of a URN, is done but not yet answered."""
        self._order_crash("delete", at)

    def ordered(self, when: str) -> frozenset[int | str]:
        """Return the crashes after a `create` or `delete` that have not happened yet."""
        with self._lock:
            return frozenset(self._crashes[when])

    @property
    def creates(self) -> int:
        """The number of started creates."""
        return self._counts["create"]

    @property
    def deletes(self) -> int:
        """The number of finished deletes."""
        return self._counts["delete"]

    def before_create(self, urn: str) -> None:
        """Count a create. Raises CreateRefusedError where this fault is injected."""
        message = self._refusals.pop(self._next("create"), None)
        if message is not None:
            raise CreateRefusedError(f"creating {_name(urn)}: {message}")

    def after_create(self, urn: str) -> None:
        """Count a finished create. Kills the engine and raises EngineCrashedError where this fault is injected."""
        self._crash_if_ordered("create", self._next("created"), urn)

    def after_delete(self, urn: str) -> None:
        """Count a finished delete. Kills the engine and raises EngineCrashedError where this fault is injected."""
        self._crash_if_ordered("delete", self._next("delete"), urn)

    def _next(self, what: str) -> int:
        with self._lock:
            self._counts[what] += 1
            return self._counts[what]

    def _order_crash(self, when: str, at: int | str) -> None:
        if self._on_crash is None:
            raise ValueError("Faults has no `on_crash`; pass the callback that kills the engine")
        self._crashes[when].add(at)

    def _crash_if_ordered(self, when: str, number: int, urn: str) -> None:
        ordered = self._crashes[when]
        with self._lock:
            hit = {number, urn} & ordered
            ordered -= hit
        if hit and self._on_crash is not None:
            self._on_crash()
            raise EngineCrashedError


def _name(urn: str) -> str:
    return urn.rsplit("::", 1)[-1]
