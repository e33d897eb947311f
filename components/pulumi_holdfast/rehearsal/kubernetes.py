"""The Kubernetes client of the rehearsal, the simulator and the tests: objects of any kind as plain JSON."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from pulumi_holdfast.controller.kube.client import MERGE, POD, ApiError, Kind, Page
from pulumi_holdfast.controller.kube.connection import JSON
from pulumi_holdfast.controller.kube.objects import name_of, namespace_of
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.api_server import ApiServer, Discovery, NoSuchKind
from pulumi_holdfast.rehearsal.errors import FAILURES, Cancellation, KubeCancelled, KubeTimeout
from pulumi_holdfast.rehearsal.watches import SYNCED, Event, Key, ObjectSelector, follow, named, record

# `list[Json]` in an annotation below `KubeClient.list` would name that method.
_Objects: TypeAlias = list[Json]
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
_MANAGED: Final[Mapping[str, str]] = {"fieldManager": "holdfast-rehearsal"}


class KubeClient:
    """Reads, writes and watches objects of one API server as plain JSON.

    Safe to use from many threads. Every call raises ApiError if the server refuses the request, NoSuchKind if it
    does not serve the kind, and Unreachable if it does not answer. A namespaced object without a namespace is in
    `default`.
    """

    def __init__(self, server: ApiServer, discovery: Discovery, cancellation: Cancellation) -> None:
        self._server = server
        self._discovery = discovery
        self._cancellation = cancellation

    @classmethod
    def from_kubeconfig(cls, path: Path) -> "KubeClient":
        """Return a client for the current context of a kubeconfig. It connects on its first request."""
        server = ApiServer(path)
        return cls(server, Discovery(server), Cancellation())

    def under(self, cancellation: Cancellation) -> "KubeClient":
        """Return a client whose watches and waits end with `cancellation`."""
        return KubeClient(self._server, self._discovery, cancellation)

    def close(self) -> None:
        """End all current and future watches and waits with KubeCancelled."""
        self._cancellation.cancel()

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self._server.address

    def server_version(self) -> str:
        """Return the version of the server, for example `v1.30.1`."""
        return str(self._server.request("GET", "/version")["gitVersion"])

    def forget_kinds(self, api_version: str) -> None:
        """Discover the kinds of this apiVersion again on the next request, because one of its CRDs changed."""
        self._discovery.forget(api_version)

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> "Json | None":
        """Return an object, or None if it does not exist."""
        found = self._discovery.find(api_version, kind)
        try:
            return self._call("GET", found, _item(found, namespace, name))
        except NoSuchKind:
            raise
        except ApiError as error:
            if error.is_missing:
                return None
            raise

    def list(
        self, api_version: str, kind: str, *, namespace: str | None = None, label_selector: str | None = None
    ) -> list[Json]:
        """Return the objects of a kind in one namespace, or in all namespaces (None)."""
        selection = ObjectSelector(namespace=namespace, label_selector=label_selector)
        found = self._discovery.find(api_version, kind)
        answer = self._call("GET", found, found.collection(namespace), query=selection.query)
        return named(found, Page(answer))

    def apply(self, obj: Json, *, field_manager: str, force: bool = False, dry_run: bool = False) -> Json:
        """Apply an object on the server; `force` takes ownership of conflicting fields."""
        kind = self._kind_of(obj)
        query = {"fieldManager": field_manager, "force": "true" if force else "false", **_tried(dry_run)}
        path = _item(kind, namespace_of(obj), name_of(obj))
        return self._call("PATCH", kind, path, query=query, body=obj, content_type=_APPLY)

    def create(self, obj: Json, *, dry_run: bool = False) -> Json:
        """Create an object. Raises ApiError 409 if an object with its name exists."""
        kind = self._kind_of(obj)
        path = kind.collection(namespace_of(obj) or "default")
        return self._call("POST", kind, path, query={**_MANAGED, **_tried(dry_run)}, body=obj)

    def merge_patch(
        self,
        api_version: str,
        kind: str,
        name: str,
        patch: Json,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Json:
        """Merge `patch` into an object or its subresource; null removes a field."""
        found = self._discovery.find(api_version, kind)
        path = _item(found, namespace, name, subresource)
        return self._call("PATCH", found, path, query=_MANAGED, body=patch, content_type=MERGE)

    def patch_status(self, api_version: str, kind: str, name: str, patch: Json, namespace: str) -> Json:
        """Merge `patch` strategically into an object's status: conditions by type, so that those of others remain."""
        found = self._discovery.find(api_version, kind)
        path = _item(found, namespace, name, "status")
        return self._call("PATCH", found, path, query=_MANAGED, body=patch, content_type=_STRATEGIC)

    def delete(
        self,
        api_version: str,
        kind: str,
        name: str,
        *,
        namespace: str | None = None,
        propagation: str = "Foreground",
        grace_seconds: int | None = None,
    ) -> bool:
        """Delete an object without waiting for its removal; returns False if it does not exist."""
        found = self._discovery.find(api_version, kind)
        options: dict[str, JsonValue] = {"propagationPolicy": propagation}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        try:
            self._call("DELETE", found, _item(found, namespace, name), body=options)
        except ApiError as error:
            if error.is_missing:
                return False
            raise
        return True

    def watch(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        timeout_seconds: float,
    ) -> Iterator[Event]:
        """Yield existing objects as ADDED and then each ADDED, MODIFIED and DELETED event for `timeout_seconds`."""
        selection = ObjectSelector(namespace=namespace, label_selector=label_selector)
        return (
            each
            for each in self.follow(api_version, kind, selection, seconds=timeout_seconds)
            if each != SYNCED
        )

    def follow(
        self, api_version: str, kind: str, selection: ObjectSelector, *, seconds: float
    ) -> Iterator[Event]:
        """Yield events as `watch` does, with SYNCED after each complete list."""
        found = self._discovery.find(api_version, kind)
        deadline = time.monotonic() + seconds
        return follow(self._server, found, selection, deadline=deadline, cancellation=self._cancellation)

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
        """Return the first state of an object (None: it does not exist) that satisfies `condition`.

        `condition` may raise an error to end the wait. Raises KubeTimeout with `what` and the last observed state.
        """

        def holds(found: _Objects) -> bool:
            return condition(found[0] if found else None)

        # A cluster-scoped kind ignores the namespace.
        selection = ObjectSelector(namespace=namespace or "default", name=name)
        found = self._wait(api_version, kind, selection, timeout_seconds, holds, what)
        return found[0] if found else None

    def wait_until_gone(
        self, api_version: str, kind: str, name: str, *, namespace: str | None = None, timeout_seconds: float
    ) -> None:
        """Wait until an object does not exist. Raises KubeTimeout."""
        self.wait_for(
            api_version,
            kind,
            name,
            namespace=namespace,
            timeout_seconds=timeout_seconds,
            condition=lambda found: found is None,
            what=f"{kind} {name} is gone",
        )

    def wait_list(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        timeout_seconds: float,
        condition: Callable[[_Objects], bool],
        what: str,
    ) -> _Objects:
        """Return the first set of objects that satisfies `condition`. Raises KubeTimeout like `wait_for`."""
        selection = ObjectSelector(namespace=namespace, label_selector=label_selector)
        return self._wait(api_version, kind, selection, timeout_seconds, condition, what)

    def _wait(
        self,
        api_version: str,
        kind: str,
        selection: ObjectSelector,
        seconds: float,
        condition: Callable[[_Objects], bool],
        what: str,
    ) -> _Objects:
        known: dict[Key, Json] = {}
        synced = False
        for event in self.follow(api_version, kind, selection, seconds=seconds):
            synced = synced or event == SYNCED
            record(known, event)
            # Wait for the complete first list: an empty partial list would satisfy "none is left".
            if synced and condition(list(known.values())):
                return list(known.values())
        raise KubeTimeout(what, seconds, list(known.values()))

    def evict(self, namespace: str, pod: str) -> None:
        """Evict a pod through the Eviction API. Raises ApiError 429 if a PodDisruptionBudget blocks the eviction."""
        eviction: Json = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        self._call("POST", POD, POD.item(namespace, pod, "eviction"), body=eviction)

    def service_account_token(
        self, namespace: str, name: str, seconds: int, *, audience: str | None = None
    ) -> str:
        """Return a token of a service account that is valid for `seconds` (at least 600).

        `audience` is who accepts it; None: the API server itself.
        """
        request: Json = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds, **({"audiences": [audience]} if audience else {})},
        }
        found = self._discovery.find("v1", "ServiceAccount")
        answer = self._call("POST", found, found.item(namespace, name, "token"), body=request)
        return str(mapping(answer.get("status"))["token"])

    def _kind_of(self, obj: Json) -> Kind:
        return self._discovery.find(str(obj["apiVersion"]), str(obj["kind"]))

    def _call(
        self,
        method: str,
        kind: Kind,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: "Json | None" = None,
        content_type: str = JSON,
    ) -> Json:
        try:
            return self._server.request(method, path, query=query, body=body, content_type=content_type)
        except ApiError as error:
            if not error.is_missing or error.message != "404 page not found":
                raise
            # The CRD of the kind was deleted after its discovery.
            self._discovery.forget(kind.api_version)
            raise NoSuchKind(kind.api_version, kind.name) from error


def _item(kind: Kind, namespace: str | None, name: str, subresource: str | None = None) -> str:
    return kind.item(namespace or "default", name, subresource)


def _tried(dry_run: bool) -> Mapping[str, str]:
    return {"dryRun": "All"} if dry_run else {}


BEGUN: Final[Event] = ("BEGUN", {})
"""Precedes the list at the start of each connection."""

_WATCH_SECONDS: Final = 24 * 3600.0
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
            except FAILURES:
                pause.wait(_RETRY_SECONDS)

    def _watch(self) -> None:
        self._take(BEGUN)
        is_listing = True
        for event in self._client.follow(*self._kind, self._selection, seconds=_WATCH_SECONDS):
            if event != SYNCED or is_listing:
                self._take(event)
            if event == SYNCED:
                is_listing = False
                self._begun.set()
