"""Reading and writing objects of any kind an API server serves."""

from collections.abc import Mapping

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.kubernetes_client.discovery import Discovery, Endpoint
from holdfast.simulator.kubernetes_client.errors import KubeError, NoSuchKind
from holdfast.simulator.kubernetes_client.following import Selection
from holdfast.simulator.kubernetes_client.summary import mapping, sequence
from holdfast.simulator.kubernetes_client.transport import Transport

_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"


class ObjectClient:
    """One API server's objects as plain JSON. Safe to use from many threads.

    Every call raises KubeError when the server refuses, NoSuchKind when it does not serve the kind and
    KubeUnreachable when nothing answers. A namespaced object named without a namespace is in `default`.
    """

    def __init__(self, transport: Transport, discovery: Discovery) -> None:
        self._transport = transport
        self._discovery = discovery

    @property
    def server(self) -> str:
        """The API server's address."""
        return self._transport.server

    def server_version(self) -> str:
        """Return the server's version, such as `v1.36.3`."""
        return str(self._transport.request("GET", "/version")["gitVersion"])

    def serves(self, api_version: str, kind: str) -> bool:
        """Return whether the server serves a kind now."""
        try:
            self._discovery.find(api_version, kind)
        except NoSuchKind:
            return False
        return True

    def namespaced(self, api_version: str, kind: str) -> bool:
        """Return whether objects of a kind live in namespaces."""
        return self._discovery.find(api_version, kind).namespaced

    def listable_kinds(self) -> list[tuple[str, str]]:
        """Return apiVersion and kind of everything the server can list."""
        return self._discovery.listable()

    def forget_kinds(self, api_version: str) -> None:
        """Ask the server again which kinds this apiVersion has: one of its CRDs came, changed or went."""
        self._discovery.forget(api_version)

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> "Json | None":
        """Return an object, or None when it is not there."""
        endpoint = self._discovery.find(api_version, kind)
        try:
            return self._call("GET", endpoint, endpoint.item(namespace, name))
        except NoSuchKind:
            raise
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    def list(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
    ) -> list[Json]:
        """Return the objects of a kind, in one namespace or in all (None)."""
        selection = Selection(namespace=namespace, label_selector=label_selector)
        endpoint = self._discovery.find(api_version, kind)
        answer = self._call("GET", endpoint, endpoint.collection(namespace), query=selection.query)
        # Items of a list of built-in kinds come without their own apiVersion and kind.
        named: Json = {"apiVersion": api_version, "kind": kind}
        return [{**named, **mapping(each)} for each in sequence(answer.get("items"))]

    def apply(self, obj: Json, *, field_manager: str, force: bool = False, dry_run: bool = False) -> Json:
        """Server-side apply an object; `force` takes fields over from other managers."""
        endpoint, namespace, name = self._locate(obj)
        query = {"fieldManager": field_manager, "force": "true" if force else "false"}
        if dry_run:
            query["dryRun"] = "All"
        path = endpoint.item(namespace, name)
        return self._call("PATCH", endpoint, path, query=query, body=obj, content_type=_APPLY)

    def create(self, obj: Json) -> Json:
        """Create an object. Raises KubeError 409 when one of its name is there."""
        metadata = mapping(obj.get("metadata"))
        endpoint = self._discovery.find(str(obj["apiVersion"]), str(obj["kind"]))
        namespace = str(metadata.get("namespace") or "default")
        return self._call("POST", endpoint, endpoint.collection(namespace), body=obj)

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
        """Merge `patch` into an object or its subresource; a null removes a field."""
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
        """Ask for an object's deletion; returns False when it was not there. Does not wait."""
        endpoint = self._discovery.find(api_version, kind)
        options: dict[str, JsonValue] = {"propagationPolicy": propagation}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        try:
            self._call("DELETE", endpoint, endpoint.item(namespace, name), body=options)
        except KubeError as error:
            if error.status == 404:
                return False
            raise
        return True

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
            # The kind was served when it was discovered: its CRD has gone since.
            self._discovery.forget(endpoint.api_version)
            raise NoSuchKind(endpoint.api_version, endpoint.kind) from error
