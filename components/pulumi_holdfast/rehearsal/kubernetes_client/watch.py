"""Follows a set of objects: lists, then watches, and lists again when the watch breaks."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Protocol, TypeAlias

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.kubernetes_client.errors import Cancellation
from pulumi_holdfast.rehearsal.kubernetes_client.transport import Endpoint

Event: TypeAlias = tuple[str, Json]
SYNCED: Event = ("SYNCED", {})
"""Marks the end of a complete list."""

Key: TypeAlias = tuple[JsonValue, JsonValue]


class Streams(Protocol):
    """The requests that a watch sends."""

    def request(self, method: str, path: str, *, query: Mapping[str, str]) -> Json:
        """Send one request without a body and return the response."""
        ...

    def stream(
        self, path: str, query: Mapping[str, str], *, seconds: float, cancellation: Cancellation
    ) -> Iterator[Json]:
        """Yield the documents of a watch."""
        ...


@dataclass(frozen=True, kw_only=True)
class ObjectSelector:
    """Selects objects of a kind by namespace (None: all), name and labels."""

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
    """Return the namespace and the name of an object."""
    metadata = mapping(obj.get("metadata"))
    return metadata.get("namespace"), metadata.get("name")


def record(known: dict[Key, Json], event: Event) -> None:
    """Apply one event to a set of known objects."""
    what, obj = event
    if what == "DELETED":
        known.pop(key_of(obj), None)
    elif event != SYNCED:
        known[key_of(obj)] = obj


def differences(known: Mapping[Key, Json], listed: Mapping[Key, Json]) -> Iterator[Event]:
    """Yield the events between the known objects and a new list."""
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
    selection: ObjectSelector,
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
    # The items of a list of a built-in kind have no apiVersion and kind.
    named: Json = {"apiVersion": endpoint.api_version, "kind": endpoint.kind}
    items: list[Json] = [{**named, **mapping(each)} for each in sequence(answer.get("items"))]
    return {key_of(each): each for each in items}


def _changes(
    streams: Streams,
    path: str,
    selection: ObjectSelector,
    version: str,
    deadline: float,
    cancellation: Cancellation,
) -> Iterator[Event]:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        return
    # The server accepts whole seconds, and ends the stream after them.
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(max(1, ceil(seconds)))}
    documents = streams.stream(path, {**selection.query, **query}, seconds=seconds, cancellation=cancellation)
    for document in documents:
        if document.get("type") == "ERROR":
            return  # the server cannot resume from this old version: list again
        yield str(document.get("type")), mapping(document.get("object"))
        if time.monotonic() >= deadline:
            return


def _version(obj: Json) -> JsonValue:
    return mapping(obj.get("metadata")).get("resourceVersion")
