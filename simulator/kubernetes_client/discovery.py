"""Which path serves a kind."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.errors import KubeError, NoSuchKind
from holdfast.simulator.kubernetes_client.summary import mapping, sequence


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where objects of one kind live on the API server."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def collection(self, namespace: str | None) -> str:
        """Return the path of all its objects, in one namespace or in all of them (None)."""
        within = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root(self.api_version)}{within}/{self.plural}"

    def item(self, namespace: str | None, name: str, subresource: str | None = None) -> str:
        """Return the path of one object; a namespaced one without a namespace is in `default`."""
        tail = f"/{subresource}" if subresource else ""
        return f"{self.collection(namespace or 'default')}/{name}{tail}"


class Requests(Protocol):
    """The part of a transport that discovery needs."""

    def request(self, method: str, path: str) -> Json:
        """Send one request without a body and return the answer."""
        ...


def root(api_version: str) -> str:
    """Return the path under which an apiVersion is served."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def endpoints(api_version: str, resources: Json) -> Mapping[str, Endpoint]:
    """Return the endpoints, by kind, in an APIResourceList."""
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
    """Endpoints by kind, asked of the API server once per apiVersion, and again for a kind not seen yet."""

    def __init__(self, transport: Requests) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._known: dict[str, Mapping[str, Endpoint]] = {}

    def find(self, api_version: str, kind: str) -> Endpoint:
        """Return where `kind` is served. Raises NoSuchKind when it is not (yet)."""
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
        """Return apiVersion and kind of everything that can be listed, each kind in its preferred version."""
        groups = map(mapping, sequence(self._transport.request("GET", "/apis").get("groups")))
        preferred = [str(mapping(each.get("preferredVersion")).get("groupVersion")) for each in groups]
        return [
            (api_version, str(each["kind"]))
            for api_version in ("v1", *preferred)
            for each in map(mapping, sequence(self._resources(api_version).get("resources")))
            if "list" in sequence(each.get("verbs")) and "/" not in str(each["name"])
        ]

    def forget(self, api_version: str) -> None:
        """Ask again the next time: a CRD of this apiVersion came, changed or went."""
        with self._lock:
            self._known.pop(api_version, None)

    def _fetch(self, api_version: str) -> Mapping[str, Endpoint]:
        return endpoints(api_version, self._resources(api_version))

    def _resources(self, api_version: str) -> Json:
        try:
            return self._transport.request("GET", root(api_version))
        except KubeError as error:
            if error.status == 404:
                return {}
            raise
