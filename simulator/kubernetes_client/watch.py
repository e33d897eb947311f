"""Following a set of objects: list, then watch, and list again whenever the watch is lost."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Protocol, TypeAlias

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.kubernetes_client.errors import Cancellation
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.kubernetes_client.transport import Endpoint

Event: TypeAlias = tuple[str, Json]
SYNCED: Event = ("SYNCED", {})
"""Between the objects that were there at first and what happened to them since."""

Key: TypeAlias = tuple[JsonValue, JsonValue]


class Streams(Protocol):
    """The part of a transport that following needs."""

    def request(self, method: str, path: str, *, query: Mapping[str, str]) -> Json:
        """Send one request without a body and return the answer."""
        ...

    def stream(
        self, path: str, query: Mapping[str, str], *, seconds: float, cancellation: Cancellation
    ) -> Iterator[Json]:
        """Yield the documents of a watch."""
        ...


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which objects of a kind: of one namespace (None: all), of one name, with some labels."""

    namespace: str | None = None
    name: str | None = None
    label_selector: str | None = None

    @property
    def query(self) -> Mapping[str, str]:
        """The selection as query parameters."""
        selectors = {
            "fieldSelector": f"metadata.name={self.name}" if self.name else None,
            "labelSelector": self.label_selector,
        }
        return {key: value for key, value in selectors.items() if value}


def key_of(obj: Json) -> Key:
    """Return what tells an object from the others of its kind."""
    metadata = mapping(obj.get("metadata"))
    return metadata.get("namespace"), metadata.get("name")


def record(known: dict[Key, Json], event: Event) -> None:
    """Bring what is known of a set of objects up to date with one event."""
    what, obj = event
    if what == "DELETED":
        known.pop(key_of(obj), None)
    elif event != SYNCED:
        known[key_of(obj)] = obj


def differences(known: Mapping[Key, Json], listed: Mapping[Key, Json]) -> Iterator[Event]:
    """Yield the events that lead from what was known to what a fresh list shows."""
    for key, obj in known.items():
        if key not in listed:
            yield "DELETED", obj
    for key, obj in listed.items():
        before = known.get(key)
        if before is None:
            yield "ADDED", obj
        elif _version(before) != _version(obj):
            yield "MODIFIED", obj


def follow(
    streams: Streams,
    endpoint: Endpoint,
    selection: Selection,
    *,
    deadline: float,
    cancellation: Cancellation,
) -> Iterator[Event]:
    """Yield the events of a set of objects until `deadline` (monotonic seconds); SYNCED after each list."""
    path = endpoint.collection(selection.namespace)
    known: dict[Key, Json] = {}
    while True:
        answer = streams.request("GET", path, query=selection.query)
        for event in [*differences(known, _listed(endpoint, answer)), SYNCED]:
            record(known, event)
            yield event
        version = str(mapping(answer.get("metadata")).get("resourceVersion"))
        for event in _changes(streams, path, selection, version, deadline, cancellation):
            record(known, event)
            yield event
        if time.monotonic() >= deadline:
            return


def _listed(endpoint: Endpoint, answer: Json) -> Mapping[Key, Json]:
    # Items of a list of built-in kinds come without their own apiVersion and kind.
    named: Json = {"apiVersion": endpoint.api_version, "kind": endpoint.kind}
    items: list[Json] = [{**named, **mapping(each)} for each in sequence(answer.get("items"))]
    return {key_of(each): each for each in items}


def _changes(
    streams: Streams,
    path: str,
    selection: Selection,
    version: str,
    deadline: float,
    cancellation: Cancellation,
) -> Iterator[Event]:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        return
    # The server takes whole seconds, and ends the stream itself when they are over.
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(max(1, ceil(seconds)))}
    documents = streams.stream(path, {**selection.query, **query}, seconds=seconds, cancellation=cancellation)
    for document in documents:
        if document.get("type") == "ERROR":
            return  # the version is too old for the server to resume from: list again
        yield str(document.get("type")), mapping(document.get("object"))
        if time.monotonic() >= deadline:
            return


def _version(obj: Json) -> JsonValue:
    return mapping(obj.get("metadata")).get("resourceVersion")
