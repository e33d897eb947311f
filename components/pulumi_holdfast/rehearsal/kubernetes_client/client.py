"""The Kubernetes client of the simulator, the rehearsal and the tests.

`KubeClient` works with objects of any kind as plain JSON. The controller in `fallback` has its own asynchronous
client, because it runs in the cluster without this package.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.kubernetes_client.errors import (
    Cancellation,
    KubeError,
    KubeTimeout,
    NoSuchKind,
)
from pulumi_holdfast.rehearsal.kubernetes_client.transport import Discovery, Endpoint, Transport
from pulumi_holdfast.rehearsal.kubernetes_client.watch import (
    SYNCED,
    Event,
    Key,
    ObjectSelector,
    follow,
    record,
)

# `list[Json]` in an annotation below `KubeClient.list` would name that method.
_Objects: TypeAlias = list[Json]
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"


class KubeClient:
    """Reads, writes and watches objects of one API server as plain JSON.

    Safe to use from many threads. Every call raises KubeError if the server refuses the request, NoSuchKind if it
    does not serve the kind, and KubeUnreachable if it does not answer. A namespaced object without a namespace is in
    `default`.
    """

    def __init__(self, transport: Transport, discovery: Discovery, cancellation: Cancellation) -> None:
        self._transport = transport
        self._discovery = discovery
        self._cancellation = cancellation

    @classmethod
    def from_kubeconfig(cls, path: Path) -> "KubeClient":
        """Return a client for the current context of a kubeconfig. It connects on its first request."""
        transport = Transport(path)
        return cls(transport, Discovery(transport), Cancellation())

    def under(self, cancellation: Cancellation) -> "KubeClient":
        """Return a client whose watches and waits end with `cancellation`."""
        return KubeClient(self._transport, self._discovery, cancellation)

    def close(self) -> None:
        """End all current and future watches and waits with KubeCancelled."""
        self._cancellation.cancel()

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self._transport.server

    def server_version(self) -> str:
        """Return the version of the server, for example `v1.30.1`."""
        return str(self._transport.request("GET", "/version")["gitVersion"])

    def namespaced(self, api_version: str, kind: str) -> bool:
        """Whether a kind is namespaced."""
        return self._discovery.find(api_version, kind).namespaced

    def listable_kinds(self) -> list[tuple[str, str]]:
        """Return apiVersion and kind of all kinds that support `list`."""
        return self._discovery.listable()

    def forget_kinds(self, api_version: str) -> None:
        """Discover the kinds of this apiVersion again on the next request, because one of its CRDs changed."""
        self._discovery.forget(api_version)

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> "Json | None":
        """Return an object, or None if it does not exist."""
        endpoint = self._discovery.find(api_version, kind)
        try:
            return self._call("GET", endpoint, endpoint.item(namespace, name))
        except NoSuchKind:
            raise
        except KubeError as error:
            if error.is_missing:
                return None
            raise

    def list(
        self, api_version: str, kind: str, *, namespace: str | None = None, label_selector: str | None = None
    ) -> list[Json]:
        """Return the objects of a kind in one namespace, or in all namespaces (None)."""
        selection = ObjectSelector(namespace=namespace, label_selector=label_selector)
        endpoint = self._discovery.find(api_version, kind)
        answer = self._call("GET", endpoint, endpoint.collection(namespace), query=selection.query)
        # The items of a list of a built-in kind have no apiVersion and kind.
        named: Json = {"apiVersion": api_version, "kind": kind}
        return [{**named, **mapping(each)} for each in sequence(answer.get("items"))]

    def apply(self, obj: Json, *, field_manager: str, force: bool = False, dry_run: bool = False) -> Json:
        """Apply an object on the server; `force` takes ownership of conflicting fields."""
        endpoint, namespace, name = self._locate(obj)
        query = {"fieldManager": field_manager, "force": "true" if force else "false"}
        if dry_run:
            query["dryRun"] = "All"
        path = endpoint.item(namespace, name)
        return self._call("PATCH", endpoint, path, query=query, body=obj, content_type=_APPLY)

    def create(self, obj: Json, *, dry_run: bool = False) -> Json:
        """Create an object. Raises KubeError 409 if an object with its name exists."""
        metadata = mapping(obj.get("metadata"))
        endpoint = self._discovery.find(str(obj["apiVersion"]), str(obj["kind"]))
        namespace = str(metadata.get("namespace") or "default")
        query = {"dryRun": "All"} if dry_run else {}
        return self._call("POST", endpoint, endpoint.collection(namespace), query=query, body=obj)

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
        endpoint = self._discovery.find(api_version, kind)
        path = endpoint.item(namespace, name, subresource)
        return self._call("PATCH", endpoint, path, body=patch, content_type=_MERGE)

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
        endpoint = self._discovery.find(api_version, kind)
        options: dict[str, JsonValue] = {"propagationPolicy": propagation}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        try:
            self._call("DELETE", endpoint, endpoint.item(namespace, name), body=options)
        except KubeError as error:
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
        name: str | None = None,
        label_selector: str | None = None,
        timeout_seconds: float,
        marks_lists: bool = False,
    ) -> Iterator[Event]:
        """Yield existing objects as ADDED and then each ADDED, MODIFIED and DELETED event for `timeout_seconds`.

        With `marks_lists`, also yield SYNCED after each complete list.
        """
        selection = ObjectSelector(namespace=namespace, name=name, label_selector=label_selector)
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
        for event in self._follow(api_version, kind, selection, seconds):
            synced = synced or event == SYNCED
            record(known, event)
            # Wait for the complete first list: an empty partial list would satisfy "none is left".
            if synced and condition(list(known.values())):
                return list(known.values())
        raise KubeTimeout(what, seconds, list(known.values()))

    def _follow(
        self, api_version: str, kind: str, selection: ObjectSelector, seconds: float
    ) -> Iterator[Event]:
        endpoint = self._discovery.find(api_version, kind)
        deadline = time.monotonic() + seconds
        return follow(
            self._transport, endpoint, selection, deadline=deadline, cancellation=self._cancellation
        )

    def evict(self, namespace: str, pod: str) -> None:
        """Evict a pod through the Eviction API. Raises KubeError 429 if a PodDisruptionBudget blocks the eviction."""
        eviction: Json = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        endpoint = self._discovery.find("v1", "Pod")
        self._call("POST", endpoint, endpoint.item(namespace, pod, "eviction"), body=eviction)

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
        endpoint = self._discovery.find("v1", "ServiceAccount")
        answer = self._call("POST", endpoint, endpoint.item(namespace, name, "token"), body=request)
        return str(mapping(answer.get("status"))["token"])

    def _locate(self, obj: Json) -> tuple[Endpoint, str, str]:
        metadata = mapping(obj.get("metadata"))
        endpoint = self._discovery.find(str(obj["apiVersion"]), str(obj["kind"]))
        return endpoint, str(metadata.get("namespace") or "default"), str(metadata["name"])

    def _call(
        self,
        method: str,
        endpoint: Endpoint,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: "Json | None" = None,
        content_type: str = "application/json",
    ) -> Json:
        try:
            return self._transport.request(method, path, query=query, body=body, content_type=content_type)
        except KubeError as error:
            if not error.is_page_not_found:
                raise
            # The CRD of the kind was deleted after its discovery.
            self._discovery.forget(endpoint.api_version)
            raise NoSuchKind(endpoint.api_version, endpoint.kind) from error
