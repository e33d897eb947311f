"""Follows objects of the API server from a thread, and hands what happens to an event loop."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeCancelled

A_DAY_SECONDS = 86_400.0
RETRY_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Watched:
    """Objects of one kind of the core API: in one namespace or all, of one name, with some labels."""

    kind: str
    namespace: str | None = None
    name: str | None = None
    label_selector: str | None = None


class Watcher:
    """Calls `changed` in the event loop with every object that is there, comes or changes, and `gone` when it goes.

    `listed` is called with all of them each time the watch begins anew, so that nothing missed between two
    watches is lost. Ends when `cancellation` is cancelled.
    """

    def __init__(
        self,
        client: KubeClient,
        watched: Watched,
        cancellation: Cancellation,
        *,
        changed: Callable[[Json], None],
        gone: Callable[[Json], None] = lambda _: None,
        listed: Callable[[Sequence[Json]], None] = lambda _: None,
    ) -> None:
        self._client = client.under(cancellation)
        self._cancellation = cancellation
        self._watched = watched
        self._changed = changed
        self._gone = gone
        self._listed = listed
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._follow, name=f"watch {watched.kind}", daemon=True).start()

    def _follow(self) -> None:
        try:
            while True:
                self._follow_until_lost()
                self._cancellation.pause(RETRY_SECONDS)
        except KubeCancelled:
            return

    def _follow_until_lost(self) -> None:
        try:
            self._follow_once()
        except KubeCancelled:
            raise
        except RehearsalError as error:
            _log.warning("watching %s: %s", self._watched.kind, error)

    def _follow_once(self) -> None:
        watched = self._watched
        objects = self._client.list(
            "v1", watched.kind, namespace=watched.namespace, label_selector=watched.label_selector
        )
        self._tell(self._listed, objects)
        for what, obj in self._client.watch(
            "v1",
            watched.kind,
            namespace=watched.namespace,
            name=watched.name,
            label_selector=watched.label_selector,
            timeout_seconds=A_DAY_SECONDS,
        ):
            self._tell(self._gone if what == "DELETED" else self._changed, obj)

    def _tell(self, listener: Callable[..., None], news: object) -> None:
        try:
            self._loop.call_soon_threadsafe(listener, news)
        except RuntimeError:
            raise KubeCancelled from None  # the loop has closed: the host is going away
