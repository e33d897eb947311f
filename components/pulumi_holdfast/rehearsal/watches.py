"""Follows a set of objects: lists, then watches, and lists again when the watch breaks."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TypeAlias

from pulumi_holdfast.controller.kube.client import Kind, Page, Unreachable
from pulumi_holdfast.controller.kube.objects import metadata_of
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.api_server import ApiServer
from pulumi_holdfast.rehearsal.errors import Cancellation

Event: TypeAlias = tuple[str, Json]
SYNCED: Event = ("SYNCED", {})
"""Marks the end of a complete list."""

Key: TypeAlias = tuple[JsonValue, JsonValue]


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
    metadata = metadata_of(obj)
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
    server: ApiServer, kind: Kind, selection: ObjectSelector, *, deadline: float, cancellation: Cancellation
) -> Iterator[Event]:
    """Yield the events of a set of objects until `deadline` (monotonic seconds); SYNCED after each list."""
    path = kind.collection(selection.namespace)
    known: dict[Key, Json] = {}
    while True:
        page = Page(server.request("GET", path, query=selection.query))
        listed = {key_of(each): each for each in named(kind, page)}
        for event in [*differences(known, listed), SYNCED]:
            record(known, event)
            yield event
        for event in _changes(server, path, selection, page.version, deadline, cancellation):
            record(known, event)
            yield event
        if time.monotonic() >= deadline:
            return


def named(kind: Kind, page: Page) -> list[Json]:
    """Return the objects of a list with the apiVersion and kind that those of built-in kinds lack."""
    return [{"apiVersion": kind.api_version, "kind": kind.name, **each} for each in page.objects]


def _changes(
    server: ApiServer,
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
    query = {
        **selection.query,
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": version,
        "timeoutSeconds": str(max(1, ceil(seconds))),
    }
    lines = server.lines(path, query, cancellation)
    try:
        for line in lines:
            event: Json = json.loads(line)
            what = str(event.get("type"))
            if what == "ERROR":
                return  # the server cannot resume from this old version: list again
            if what != "BOOKMARK":
                yield what, mapping(event.get("object"))
            if time.monotonic() >= deadline:
                return
    except (Unreachable, ValueError):
        return  # the stream broke, maybe within a line: list again


def _version(obj: Json) -> JsonValue:
    return metadata_of(obj).get("resourceVersion")
