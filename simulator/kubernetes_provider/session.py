"""The connection to a rehearsal's control plane, and the calls that are under way on it."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeUnreachable


class Session:
    """One API server, and a cancellation for each call that talks to it. Safe to use from many threads."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._guard = threading.Lock()
        self._client: KubeClient | None = None
        self._running: set[Cancellation] = set()

    @contextmanager
    def call(
        self, on_end: Callable[[Callable[[], None]], object]
    ) -> Generator[tuple[KubeClient, Cancellation]]:
        """Yield a client and the cancellation of its waits, for one call of the engine.

        `on_end` is told what to do when the call ends from outside. Raises RehearsalError with the one thing
        to do when the control plane does not answer.
        """
        cancellation = Cancellation()
        on_end(cancellation.cancel)
        with self._guard:
            self._running.add(cancellation)
        try:
            with self._reachable():
                yield self._connected().under(cancellation), cancellation
        finally:
            with self._guard:
                self._running.discard(cancellation)

    def cancel(self) -> None:
        """End every wait under way; later calls work."""
        with self._guard:
            running = list(self._running)
        for cancellation in running:
            cancellation.cancel()

    def _connected(self) -> KubeClient:
        with self._guard:
            if self._client is None:
                self._client = KubeClient.from_kubeconfig(self._kubeconfig)
            return self._client

    @contextmanager
    def _reachable(self) -> Generator[None]:
        stack = self._kubeconfig.parent.name
        if not self._kubeconfig.is_file():
            raise RehearsalError(
                f"stack {stack} has no control plane: {self._kubeconfig} does not exist; run `make up`"
            )
        try:
            yield
        except KubeUnreachable as error:
            raise RehearsalError(
                f"the control plane of stack {stack} does not answer at {error.server}; start it with `make up`"
            ) from error
