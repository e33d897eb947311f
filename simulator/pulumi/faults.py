"""Failures on order: what a rehearsal tells its stand-in providers to suffer."""

import threading
from collections import Counter
from collections.abc import Callable

from holdfast.simulator.errors import RehearsalError

# Real providers give up after some 25 attempts over minutes. Ten keep the shape; the waits double from
# 2 ms to at most 64 ms, so that giving up costs a third of a second.
MAX_RETRIES = 10
_FIRST_WAIT_SECONDS = 0.002
_LONGEST_WAIT_SECONDS = 0.064


class CreateRefusedError(RehearsalError):
    """The cloud refused to create a resource, because `Faults.fail_create` said so."""


class ThrottledError(RehearsalError):
    """A call was throttled for longer than the provider's retries last."""


class EngineCrashedError(Exception):
    """The engine was killed during a call, which must therefore never be answered."""


class Faults:
    """Failures ordered in advance; one object serves every stand-in of a run, on any thread.

    Creates, deletes and calls are counted from 1 over all stand-ins, previews apart.
    `on_crash` kills the engine; without one a crash cannot be ordered.
    """

    def __init__(self, *, on_crash: Callable[[], None] | None = None) -> None:
        self._on_crash = on_crash
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._refusals: dict[int, str] = {}
        self._crashes: dict[str, set[int | str]] = {"create": set(), "delete": set()}
        self._throttles: dict[int, int] = {}

    def fail_create(self, n: int, message: str) -> None:
        """Make the n-th create fail with a message, once."""
        self._refusals[n] = message

    def crash_after_create(self, at: int | str) -> None:
        """Kill the engine once the n-th create, or the create of a URN, is done but not yet answered."""
        self._order_crash("create", at)

    def crash_after_delete(self, at: int | str) -> None:
        """Kill the engine once the n-th delete, or the delete of a URN, is done but not yet answered."""
        self._order_crash("delete", at)

    def throttle(self, call_number: int, times: int) -> None:
        """Turn the n-th call away so many times before it is served; above `MAX_RETRIES` it fails."""
        self._throttles[call_number] = times

    def ordered(self, when: str) -> frozenset[int | str]:
        """Return the crashes after a `create` or `delete` that have not come yet."""
        with self._lock:
            return frozenset(self._crashes[when])

    @property
    def creates(self) -> int:
        """How many creates have begun."""
        return self._counts["create"]

    @property
    def deletes(self) -> int:
        """How many deletes are done."""
        return self._counts["delete"]

    @property
    def calls(self) -> int:
        """How many calls have begun; a retry is no new call."""
        return self._counts["call"]

    @property
    def retries(self) -> int:
        """How many times a throttled call was tried again."""
        return self._counts["retry"]

    def before_call(self, name: str, *, reason: str = "Rate exceeded") -> None:
        """Count a call and, if it is to be throttled, try again as a provider does.

        `reason` is the cloud's message. Raises ThrottledError where the retries do not last.
        """
        turned_away = self._throttles.pop(self._next("call"), 0)
        wait = _FIRST_WAIT_SECONDS
        for _ in range(min(turned_away, MAX_RETRIES)):
            threading.Event().wait(wait)
            wait = min(wait * 2, _LONGEST_WAIT_SECONDS)
            self._next("retry")
        if turned_away > MAX_RETRIES:
            raise ThrottledError(f"{name}: {reason}; gave up after {MAX_RETRIES} retries")

    def before_create(self, urn: str) -> None:
        """Count a create. Raises CreateRefusedError where it is ordered to fail."""
        message = self._refusals.pop(self._next("create"), None)
        if message is not None:
            raise CreateRefusedError(f"creating {_name(urn)}: {message}")

    def after_create(self, urn: str) -> None:
        """Note that a create is done. Raises EngineCrashedError, the engine killed, where that is ordered."""
        self._crash_if_ordered("create", self._next("created"), urn)

    def after_delete(self, urn: str) -> None:
        """Note that a delete is done. Raises EngineCrashedError, the engine killed, where that is ordered."""
        self._crash_if_ordered("delete", self._next("delete"), urn)

    def _next(self, what: str) -> int:
        with self._lock:
            self._counts[what] += 1
            return self._counts[what]

    def _order_crash(self, when: str, at: int | str) -> None:
        if self._on_crash is None:
            raise ValueError("a crash needs `on_crash`, the callback that kills the engine")
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
