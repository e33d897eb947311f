"""A thread that follows objects until it is told to end, also over an API server that goes and comes back."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeCancelled
from holdfast.simulator.kubernetes_client.following import SYNCED, Event

BEGUN: Final[Event] = ("BEGUN", {})
"""Before the first list of a connection."""

_SECONDS: Final = 24 * 3600.0
# An API server that was killed is back after some seconds.
_RETRY_SECONDS: Final = 0.3


@dataclass(frozen=True, kw_only=True)
class Followed:
    """Which objects to follow."""

    api_version: str
    kind: str
    namespace: str
    label_selector: str | None = None


class Follower(threading.Thread):
    """Hands on each event until the client's cancellation.

    Each connection begins with BEGUN, everything there is as ADDED, and SYNCED: whoever was cut off finds out what went
    meanwhile.
    """

    def __init__(self, client: KubeClient, followed: Followed, take: Callable[[Event], None]) -> None:
        super().__init__(name=f"follow {followed.kind}", daemon=True)
        self._client = client
        self._followed = followed
        self._take = take
        self._begun = threading.Event()

    def wait_begun(self) -> None:
        """Wait until what is there has been told."""
        self._begun.wait()

    def run(self) -> None:
        """Follow; called by `start`."""
        pause = threading.Event()
        while True:
            try:
                self._follow()
            except KubeCancelled:
                self._begun.set()
                return
            except RehearsalError:
                pause.wait(_RETRY_SECONDS)

    def _follow(self) -> None:
        self._take(BEGUN)
        is_listing = True
        for event in self._client.watch(
            self._followed.api_version,
            self._followed.kind,
            namespace=self._followed.namespace,
            label_selector=self._followed.label_selector,
            timeout_seconds=_SECONDS,
            marks_lists=True,
        ):
            if event != SYNCED or is_listing:
                self._take(event)
            if event == SYNCED:
                is_listing = False
                self._begun.set()
