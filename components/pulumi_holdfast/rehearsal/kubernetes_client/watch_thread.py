"""A thread that watches objects until its client is canceled, and connects again when the API server was away."""

import threading
from collections.abc import Callable
from typing import Final

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_client.errors import KubeCancelled
from pulumi_holdfast.rehearsal.kubernetes_client.watch import SYNCED, Event, ObjectSelector

BEGUN: Final[Event] = ("BEGUN", {})
"""Precedes the list at the start of each connection."""

_SECONDS: Final = 24 * 3600.0
# A killed API server is back within seconds.
_RETRY_SECONDS: Final = 0.3


class WatchThread(threading.Thread):
    """Passes each watch event of a kind to `take` until the client is canceled.

    Each connection begins with BEGUN, every object as ADDED, and SYNCED: after a broken connection, an object that is not
    listed was deleted in the meantime.
    """

    def __init__(
        self,
        client: KubeClient,
        api_version: str,
        kind: str,
        take: Callable[[Event], None],
        selection: ObjectSelector | None = None,
    ) -> None:
        super().__init__(name=f"watch {kind}", daemon=True)
        self._client = client
        self._kind = (api_version, kind)
        self._selection = selection or ObjectSelector()
        self._take = take
        self._begun = threading.Event()

    def wait_begun(self) -> None:
        """Wait until the first list is complete."""
        self._begun.wait()

    def run(self) -> None:
        """Watch until canceled; called by `start`."""
        pause = threading.Event()
        while True:
            try:
                self._watch()
            except KubeCancelled:
                self._begun.set()
                return
            except RehearsalError:
                pause.wait(_RETRY_SECONDS)

    def _watch(self) -> None:
        self._take(BEGUN)
        is_listing = True
        for event in self._client.watch(
            *self._kind,
            namespace=self._selection.namespace,
            name=self._selection.name,
            label_selector=self._selection.label_selector,
            timeout_seconds=_SECONDS,
            marks_lists=True,
        ):
            if event != SYNCED or is_listing:
                self._take(event)
            if event == SYNCED:
                is_listing = False
                self._begun.set()
