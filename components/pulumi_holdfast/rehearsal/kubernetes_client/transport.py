"""JSON over HTTP to one API server, and the discovery of its kinds.

Only this module imports the official `kubernetes` client, for kubeconfigs and authentication. That package has no
types and takes about a second to import, so it is imported when the first client is created.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

import urllib3
from urllib3.exceptions import HTTPError

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.kubernetes_client.errors import (
    Cancellation,
    KubeError,
    KubeUnreachable,
    NoSuchKind,
)

# A local API server answers in milliseconds, but a conversion or admission webhook may take 30 s.
_CONNECT_SECONDS = 5
_READ_SECONDS = 60
# The engine runs operations in parallel, and each wait holds a connection.
_CONNECTIONS = 64


class _Configuration(Protocol):
    host: str
    proxy: str | None
    connection_pool_maxsize: int


class _Response(Protocol):
    response: urllib3.HTTPResponse
    status: int
    reason: str

    def read(self) -> bytes: ...


class _Client(Protocol):
    configuration: _Configuration

    def param_serialize(
        self,
        method: str,
        resource_path: str,
        *,
        query_params: list[tuple[str, str]],
        header_params: dict[str, str],
        body: "Json | None",
        auth_settings: list[str],
    ) -> tuple[object, ...]: ...

    def call_api(self, *request: object, _request_timeout: tuple[float, float]) -> _Response: ...


def _load(kubeconfig: Path) -> _Client:
    client, config = import_module("kubernetes.client"), import_module("kubernetes.config")
    configuration = client.Configuration()
    try:
        config.load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
    except config.ConfigException as error:
        raise KubeError(0, "BadKubeconfig", f"kubeconfig {kubeconfig} cannot be used: {error}") from error
    typed = cast("_Configuration", configuration)
    typed.proxy = None  # the control plane is on this machine: ignore HTTPS_PROXY
    typed.connection_pool_maxsize = _CONNECTIONS
    return cast("_Client", client.ApiClient(configuration))


class Transport:
    """Sends requests and opens watch streams to the API server of a kubeconfig. Safe to use from many threads."""

    def __init__(self, kubeconfig: Path) -> None:
        self._client = _load(kubeconfig)

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self._client.configuration.host

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: "Json | None" = None,
        content_type: str = "application/json",
    ) -> Json:
        """Send one request and return the JSON response.

        Raises KubeError with the message of the server if it refuses, and KubeUnreachable if it does not answer.
        """
        response = self._send(method, path, query or {}, body, content_type, _READ_SECONDS)
        try:
            text = response.read()
        except HTTPError as error:
            raise KubeUnreachable(self.server, str(error)) from error
        return _decode(response.status, response.reason, text)

    def stream(
        self, path: str, query: Mapping[str, str], *, seconds: float, cancellation: Cancellation
    ) -> Iterator[Json]:
        """Yield one JSON document for each line of the response until the server ends it.

        Raises KubeError if the server refuses, and KubeCancelled on a cancellation, also while the stream is idle.
        """
        response = self._send("GET", path, query, None, "application/json", seconds + _READ_SECONDS)
        if response.status >= 300:
            _decode(response.status, response.reason, response.read())
        raw = response.response
        try:
            with cancellation.running(lambda: _cut(raw)):
                yield from _lines(raw)
        except (HTTPError, OSError, ValueError):
            # The connection failed, or the cancellation closed it.
            cancellation.refuse_when_cancelled()
        finally:
            raw.close()
        cancellation.refuse_when_cancelled()

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: "Json | None",
        content_type: str,
        read_seconds: float,
    ) -> _Response:
        request = self._client.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params={"Accept": "application/json", "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            return self._client.call_api(*request, _request_timeout=(_CONNECT_SECONDS, read_seconds))
        except HTTPError as error:
            raise KubeUnreachable(self.server, str(error)) from error
        except Exception as error:
            # The client wraps a failed TLS handshake in its own exception with status 0.
            if getattr(error, "status", None) == 0:
                raise KubeUnreachable(self.server, str(getattr(error, "reason", error))) from error
            raise


def _cut(raw: urllib3.HTTPResponse) -> None:
    """Close a stream that another thread reads."""
    with suppress(OSError, RuntimeError, ValueError):
        raw.shutdown()


def _lines(raw: urllib3.HTTPResponse) -> Iterator[Json]:
    rest = b""
    for chunk in raw.stream(64 * 1024, decode_content=True):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield cast("Json", json.loads(line))


def _decode(status: int, reason: str, text: bytes) -> Json:
    try:
        document = cast("Json", json.loads(text or b"{}"))
    except ValueError:
        # The response for an unserved path is the text "404 page not found", not a Status.
        document = {"kind": "Text", "message": text.decode(errors="replace").strip()}
    if status >= 300:
        words = str(document.get("reason") or reason or "")
        raise KubeError(status, words, str(document.get("message") or ""))
    return document


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """The API path of one kind."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def collection(self, namespace: str | None) -> str:
        """Return the path of the objects in one namespace, or in all namespaces (None)."""
        within = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root(self.api_version)}{within}/{self.plural}"

    def item(self, namespace: str | None, name: str, subresource: str | None = None) -> str:
        """Return the path of one object; a namespaced object without a namespace is in `default`."""
        tail = f"/{subresource}" if subresource else ""
        return f"{self.collection(namespace or 'default')}/{name}{tail}"


class Requests(Protocol):
    """The requests that discovery sends."""

    def request(self, method: str, path: str) -> Json:
        """Send one request without a body and return the response."""
        ...


def root(api_version: str) -> str:
    """Return the path of an apiVersion."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def endpoints(api_version: str, resources: Json) -> Mapping[str, Endpoint]:
    """Return the endpoints of an APIResourceList by kind."""
    found = [mapping(each) for each in sequence(resources.get("resources"))]
    return {
        str(each["kind"]): Endpoint(
            api_version=api_version,
            kind=str(each["kind"]),
            plural=str(each["name"]),
            namespaced=bool(each.get("namespaced")),
        )
        for each in found
        if "/" not in str(each["name"])
    }


class Discovery:
    """Finds the endpoint of a kind. Requests each apiVersion once, and again for an unknown kind."""

    def __init__(self, transport: Requests) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._known: dict[str, Mapping[str, Endpoint]] = {}

    def find(self, api_version: str, kind: str) -> Endpoint:
        """Return the endpoint of `kind`. Raises NoSuchKind if the server does not serve it yet."""
        with self._lock:
            known = self._known.get(api_version, {}).get(kind)
        if known:
            return known
        fetched = self._fetch(api_version)
        with self._lock:
            self._known[api_version] = fetched
        if kind not in fetched:
            raise NoSuchKind(api_version, kind)
        return fetched[kind]

    def listable(self) -> list[tuple[str, str]]:
        """Return apiVersion and kind of all kinds that support `list`, in their preferred version."""
        groups = map(mapping, sequence(self._transport.request("GET", "/apis").get("groups")))
        preferred = [str(mapping(each.get("preferredVersion")).get("groupVersion")) for each in groups]
        return [
            (api_version, str(each["kind"]))
            for api_version in ("v1", *preferred)
            for each in map(mapping, sequence(self._resources(api_version).get("resources")))
            if "list" in sequence(each.get("verbs")) and "/" not in str(each["name"])
        ]

    def forget(self, api_version: str) -> None:
        """Request this apiVersion again the next time, because one of its CRDs changed."""
        with self._lock:
            self._known.pop(api_version, None)

    def _fetch(self, api_version: str) -> Mapping[str, Endpoint]:
        return endpoints(api_version, self._resources(api_version))

    def _resources(self, api_version: str) -> Json:
        try:
            return self._transport.request("GET", root(api_version))
        except KubeError as error:
            if error.is_missing:
                return {}
            raise
