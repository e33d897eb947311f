"""Ending waits from another thread."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from holdfast.simulator.kubernetes_client.errors import KubeCancelled


class Cancellation:
    """Cancels whatever is under way below it, once; what starts later is refused."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: dict[object, Callable[[], None]] = {}
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Run every action in force, and refuse later ones. Harmless when repeated."""
        with self._lock:
            self._cancelled.set()
            actions = list(self._actions.values())
            self._actions.clear()
        for action in actions:
            action()

    def refuse_when_cancelled(self) -> None:
        """Raise KubeCancelled once `cancel` was called."""
        if self._cancelled.is_set():
            raise KubeCancelled

    @contextmanager
    def running(self, action: Callable[[], None]) -> Generator[None]:
        """Within the block, a cancellation calls `action`. Raises KubeCancelled when it is too late."""
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
        """Wait for `seconds`. Raises KubeCancelled at once when cancelled."""
        if self._cancelled.wait(seconds):
            raise KubeCancelled
