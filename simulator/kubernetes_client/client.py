"""The one client through which everything here talks to an API server."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.cancellation import Cancellation
from holdfast.simulator.kubernetes_client.discovery import Discovery
from holdfast.simulator.kubernetes_client.errors import KubeTimeout
from holdfast.simulator.kubernetes_client.following import SYNCED, Event, Key, Selection, follow, record
from holdfast.simulator.kubernetes_client.objects import ObjectClient
from holdfast.simulator.kubernetes_client.summary import mapping
from holdfast.simulator.kubernetes_client.transport import Transport


class KubeClient(ObjectClient):
    """One API server's objects as plain JSON, with watches, waits and a pod's and service account's own verbs.

    Safe to use from many threads. Every call raises KubeError when the server refuses, NoSuchKind when it does
    not serve the kind and KubeUnreachable when nothing answers. A namespaced object named without a namespace
    is in `default`.
    """

    def __init__(self, transport: Transport, discovery: Discovery, cancellation: Cancellation) -> None:
        super().__init__(transport, discovery)
        self._cancellation = cancellation

    @classmethod
    def from_kubeconfig(cls, path: Path) -> "KubeClient":
        """Return a client for the current context of a kubeconfig. Connects on first use."""
        transport = Transport(path)
        return cls(transport, Discovery(transport), Cancellation())

    def under(self, cancellation: Cancellation) -> "KubeClient":
        """Return the same client with its watches and waits under another cancellation."""
        return KubeClient(self._transport, self._discovery, cancellation)

    def close(self) -> None:
        """End every watch and wait under way, and every later one, with KubeCancelled."""
        self._cancellation.cancel()

    def watch(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str | None = None,
        name: str | None = None,
        label_selector: str | None = None,
        timeout_seconds: float,
        marks_lists: bool = False,
    ) -> Iterator[Event]:
        """Yield what is there as ADDED, then each ADDED, MODIFIED and DELETED, for `timeout_seconds`.

        With `marks_lists` also SYNCED, whenever a list was told in full.
        """
        selection = Selection(namespace=namespace, name=name, label_selector=label_selector)
        for event in self._follow(api_version, kind, selection, timeout_seconds):
            if marks_lists or event != SYNCED:
                yield event

    def wait_for(
        self,
        api_version: str,
        kind: str,
        name: str,
        *,
        namespace: str | None = None,
        timeout_seconds: float,
        condition: "Callable[[Json | None], bool]",
        what: str,
    ) -> "Json | None":
        """Return an object's first state (None: it is not there) for which `condition` holds.

        `condition` may raise to give up early. Raises KubeTimeout, which names `what` and the last state seen.
        """

        def holds(found: list[Json]) -> bool:
            return condition(found[0] if found else None)

        # A kind of the cluster's scope takes no notice of the namespace.
        selection = Selection(namespace=namespace or "default", name=name)
        found = self._wait(api_version, kind, selection, timeout_seconds, holds, what)
        return found[0] if found else None

    def wait_list(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        timeout_seconds: float,
        condition: Callable[[list[Json]], bool],
        what: str,
    ) -> list[Json]:
        """Return the first set of objects for which `condition` holds. Raises KubeTimeout like `wait_for`."""
        selection = Selection(namespace=namespace, label_selector=label_selector)
        return self._wait(api_version, kind, selection, timeout_seconds, condition, what)

    def _wait(
        self,
        api_version: str,
        kind: str,
        selection: Selection,
        seconds: float,
        condition: Callable[[list[Json]], bool],
        what: str,
    ) -> list[Json]:
        known: dict[Key, Json] = {}
        synced = False
        for event in self._follow(api_version, kind, selection, seconds):
            synced = synced or event == SYNCED
            record(known, event)
            # A half-received first list says nothing yet: "none is left" would hold at once.
            if synced and condition(list(known.values())):
                return list(known.values())
        raise KubeTimeout(what, seconds, next(iter(known.values()), None))

    def _follow(self, api_version: str, kind: str, selection: Selection, seconds: float) -> Iterator[Event]:
        endpoint = self._discovery.find(api_version, kind)
        deadline = time.monotonic() + seconds
        return follow(
            self._transport, endpoint, selection, deadline=deadline, cancellation=self._cancellation
        )

    def evict(self, namespace: str, pod: str) -> None:
        """Evict a pod through the Eviction API. Raises KubeError 429 while a disruption budget forbids it."""
        eviction: Json = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        endpoint = self._discovery.find("v1", "Pod")
        self._call("POST", endpoint, endpoint.item(namespace, pod, "eviction"), body=eviction)

    def service_account_token(self, namespace: str, name: str, seconds: int) -> str:
        """Return a token of a service account that lasts `seconds` (at least 600)."""
        request: Json = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        endpoint = self._discovery.find("v1", "ServiceAccount")
        answer = self._call("POST", endpoint, endpoint.item(namespace, name, "token"), body=request)
        return str(mapping(answer.get("status"))["token"])
