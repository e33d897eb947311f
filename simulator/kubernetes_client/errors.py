"""What can go wrong between us and an API server."""

from typing import TYPE_CHECKING

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.objects import summarize

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

# ruff: noqa: N818 - a name that says what is wrong needs no "Error" behind it


class KubeError(RehearsalError):
    """The API server refused a request: its status code, its reason and its own words."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message or f"the API server answered {status} {reason}")
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def is_page_not_found(self) -> bool:
        """Whether nobody serves the path at all, as against: the object in it is missing."""
        return self.status == 404 and self.message == "404 page not found"


class NoSuchKind(KubeError):
    """The API server serves no such kind: its CRD is missing, or not served yet."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(404, "NoMatch", f"the API server serves no kind {kind} in {api_version}")
        self.api_version = api_version
        self.kind = kind


class KubeUnreachable(RehearsalError):
    """Nothing answers where the API server should be."""

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(f"the API server at {server} does not answer ({cause})")
        self.server = server


class KubeCancelled(RehearsalError):
    """A wait was ended because the run was cancelled or its client closed."""

    def __init__(self) -> None:
        super().__init__("cancelled")


class KubeTimeout(RehearsalError):
    """A condition did not come about in time."""

    def __init__(self, what: str, seconds: float, last: "Json | None") -> None:
        super().__init__(f"{what}: not so after {seconds:.0f} s; last seen: {summarize(last)}")
        self.what = what
        self.seconds = seconds
        self.last = last


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
