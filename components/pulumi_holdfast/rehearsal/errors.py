"""The errors of the simulator and the rehearsal, and the cancellation of their waits."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from pulumi_holdfast.controller.kube.client import ApiError, Unreachable
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.objects import summarize

#: How many objects the message of a timeout describes: the object that is missing or late is often not the first.
_OBJECTS_SHOWN: Final = 8

# ruff: noqa: N818 - these names describe the error without the suffix


class RehearsalError(Exception):
    """An error that the user can fix: its message names the problem and the fix."""


#: Whose message says all that the user needs; a loop that talks to a cluster tries again after them.
FAILURES: Final = (RehearsalError, ConfigError, ApiError, Unreachable)


class KubeCancelled(RehearsalError):
    """A wait ended because the run was canceled or its client was closed."""

    def __init__(self) -> None:
        super().__init__("canceled")


class KubeTimeout(RehearsalError):
    """A condition was not satisfied in time; the message shows the objects that the wait last saw."""

    def __init__(self, what: str, seconds: float, observed: Sequence[Json]) -> None:
        seen = " | ".join(map(summarize, observed[:_OBJECTS_SHOWN])) or summarize(None)
        more = f" | and {len(observed) - _OBJECTS_SHOWN} more" if len(observed) > _OBJECTS_SHOWN else ""
        super().__init__(f"{what}: not satisfied after {seconds:.0f} s; last observed: {seen}{more}")


class Cancellation:
    """Cancels the running actions once, and refuses later ones. Callable from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: dict[object, Callable[[], object]] = {}
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Run every registered action, and refuse later ones. A second call does nothing."""
        with self._lock:
            self._cancelled.set()
            actions = list(self._actions.values())
            self._actions.clear()
        for action in actions:
            action()

    def refuse_when_cancelled(self) -> None:
        """Raise KubeCancelled if `cancel` was called."""
        if self._cancelled.is_set():
            raise KubeCancelled

    @contextmanager
    def running(self, action: Callable[[], object]) -> Generator[None]:
        """Call `action` on a cancellation during the block. Raises KubeCancelled if already canceled."""
        token = object()
        with self._lock:
            self.refuse_when_cancelled()
            self._actions[token] = action
        try:
            yield
        finally:
            with self._lock:
                self._actions.pop(token, None)

    def pause(self, seconds: float) -> None:
        """Wait for `seconds`. Raises KubeCancelled on a cancellation."""
        if self._cancelled.wait(seconds):
            raise KubeCancelled
