"""The errors of the Kubernetes client, and the cancellation of its waits."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_client.objects import summarize

#: How many objects the message of a timeout describes: the object that is missing or late is often not the first.
_OBJECTS_SHOWN: Final = 8

# ruff: noqa: N818 - these names describe the error without the suffix


class KubeError(RehearsalError):
    """The API server refused a request; has the status code, the reason and the message of the server."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message or f"the API server answered {status} {reason}")
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def is_missing(self) -> bool:
        """Whether the object does not exist, or the server does not serve its kind."""
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """Whether the object exists already or has changed, or another manager owns a field."""
        return self.status == 409

    @property
    def is_page_not_found(self) -> bool:
        """Whether the server does not serve the path, as opposed to a missing object."""
        return self.is_missing and self.message == "404 page not found"


class NoSuchKind(KubeError):
    """The API server does not serve the kind: its CRD is missing or not established yet."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(404, "NoMatch", f"the API server serves no kind {kind} in {api_version}")
        self.api_version = api_version
        self.kind = kind


class KubeUnreachable(RehearsalError):
    """The API server does not answer."""

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(f"the API server at {server} does not answer ({cause})")
        self.server = server


class KubeCancelled(RehearsalError):
    """A wait ended because the run was canceled or its client was closed."""

    def __init__(self) -> None:
        super().__init__("canceled")


class KubeTimeout(RehearsalError):
    """A condition was not satisfied in time; `observed` are the objects that the wait last saw."""

    def __init__(self, what: str, seconds: float, observed: Sequence[Json]) -> None:
        seen = " | ".join(map(summarize, observed[:_OBJECTS_SHOWN])) or summarize(None)
        more = f" | and {len(observed) - _OBJECTS_SHOWN} more" if len(observed) > _OBJECTS_SHOWN else ""
        super().__init__(f"{what}: not satisfied after {seconds:.0f} s; last observed: {seen}{more}")
        self.observed = tuple(observed)

    @property
    def last(self) -> "Json | None":
        """The first observed object, or None if there was none."""
        return self.observed[0] if self.observed else None


class Cancellation:
    """Cancels the running actions once, and refuses later ones. Callable from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: dict[object, Callable[[], None]] = {}
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
    def running(self, action: Callable[[], None]) -> Generator[None]:
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
