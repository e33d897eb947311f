"""An indexed cache of the objects of one kind."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from pulumi_holdfast.controller.api.objects import metadata_of, text
from pulumi_holdfast.ladder.json import Json

T = TypeVar("T")

Name: TypeAlias = tuple[str, str]
"""Namespace (empty for an object of the cluster's scope) and name."""

_VERSION: Final = re.compile(r"[0-9]{1,20}", re.ASCII)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Change(Generic[T]):
    """A change of one object: `before` is None for a new object, `after` for a deleted one. `is_own`: the controller wrote it."""

    name: Name
    before: T | None
    after: T | None
    is_own: bool = False


class Cache(Generic[T]):
    """The objects of one kind, reduced to the fields that are read.

    `keep` trims an object, or returns None for one to ignore. `indexes` return the keys under which an object is found.
    Handlers are called for every change of a trimmed object, in the order of the changes, after all indexes are updated.

    An object that `keep`, an index or a handler cannot process concerns no other object: the error is counted in `errors`, and
    logged once for the object. A version that cannot be cached is ignored, and the version before it stays.
    """

    def __init__(
        self,
        keep: Callable[[Json], T | None],
        *,
        indexes: Mapping[str, Callable[[Name, T], Iterable[str]]] | None = None,
    ) -> None:
        self._keep = keep
        self._indexes = indexes or {}
        self._objects: dict[Name, T] = {}
        self._marks: dict[Name, tuple[str, int]] = {}
        # The keys of each object: computing them again to forget them would double the cost of a change.
        self._keys: dict[Name, list[tuple[str, str]]] = {}
        self._found: dict[tuple[str, str], dict[Name, T]] = {}
        self._listeners: list[Callable[[Change[T]], None]] = []
        self._logged: set[Name] = set()
        self.errors = 0

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def add_handler(self, listener: Callable[[Change[T]], None]) -> None:
        """Call `listener` with every change from now on."""
        self._listeners.append(listener)

    def get(self, namespace: str, name: str) -> T | None:
        """Return a trimmed object; the namespace is empty for a cluster-scoped one."""
        return self._objects.get((namespace, name))

    def known(self) -> list[Name]:
        """Return the names of all objects."""
        return list(self._objects)

    def all(self, index: str) -> list[T]:
        """Return the objects that `index` has under any key."""
        return [obj for (each, _), found in self._found.items() if each == index for obj in found.values()]

    def names(self, index: str, key: str) -> list[Name]:
        """Return the names of the objects that `index` has under `key`."""
        return list(self._found.get((index, key), {}))

    def has(self, index: str, key: str) -> bool:
        """Whether `index` has any object under `key`."""
        return (index, key) in self._found

    def find(self, index: str, key: str) -> list[T]:
        """Return the objects that `index` has under `key`."""
        return list(self._found.get((index, key), {}).values())

    def put(self, obj: Json, *, is_listed: bool = False, is_own: bool = False) -> None:
        """Store an object from a watch, unless a later version of it is known.

        An object from a list is always stored: the versions of a restored etcd have gone back.
        """
        name, uid, version = name_of(obj), text(metadata_of(obj).get("uid")), _version(obj)
        known = self._marks.get(name)
        if known is not None and known[0] != uid:
            self._set(name, None)  # deleted and created again under its name: handlers see two objects
        elif known is not None and version < known[1] and not is_listed:
            return
        try:
            after = self._keep(obj)
            keys = [] if after is None else self._keys_of(name, after)
        except Exception:  # noqa: BLE001  # one object must not stop the others
            self._count_error(name, "an object cannot be cached")
            return
        self._set(name, after, keys, (uid, version), is_own=is_own)

    def refresh(self, obj: Json, *, is_own: bool = True) -> None:
        """Store the response of the controller's own write, before the watch delivers it.

        `is_own`: the object has no other change, since the write required the version that is known.

        An object that is not known any more stays unknown: it may have been deleted since.
        """
        known = self._marks.get(name_of(obj))
        if known is not None and known[0] == text(metadata_of(obj).get("uid")):
            self.put(obj, is_own=is_own)

    def remove(self, obj: Json) -> None:
        """Store an object's last version, then remove it."""
        self.put(obj)
        self._set(name_of(obj), None)
        self._logged.discard(name_of(obj))

    def retain(self, names: set[Name]) -> None:
        """Remove all objects but these."""
        for name in [each for each in self._objects if each not in names]:
            self._set(name, None)

    def _set(
        self,
        name: Name,
        after: T | None,
        keys: list[tuple[str, str]] | None = None,
        mark: tuple[str, int] = ("", 0),
        *,
        is_own: bool = False,
    ) -> None:
        before = self._objects.get(name)
        if after is None:
            self._objects.pop(name, None)
            self._marks.pop(name, None)
        else:
            self._objects[name] = after
            self._marks[name] = mark
        self._index(name, after, keys or [])
        if before != after:
            change = Change(name=name, before=before, after=after, is_own=is_own)
            for listener in self._listeners:
                self._call(listener, change)

    def _call(self, listener: Callable[[Change[T]], None], change: Change[T]) -> None:
        try:
            listener(change)
        except Exception:  # noqa: BLE001  # as in put
            self._count_error(change.name, "a change cannot be processed")

    def _count_error(self, name: Name, what: str) -> None:
        self.errors += 1
        if name not in self._logged:
            self._logged.add(name)
            _log.exception("%s", what, extra={"object": "/".join(filter(None, name))})

    def _index(self, name: Name, after: T | None, keys: list[tuple[str, str]]) -> None:
        before = self._keys.pop(name, [])
        for found_by in before:
            if found_by not in keys:
                entries = self._found.get(found_by, {})
                entries.pop(name, None)
                if not entries:
                    self._found.pop(found_by, None)
        if after is not None:
            self._keys[name] = keys
            for found_by in keys:
                self._found.setdefault(found_by, {})[name] = after

    def _keys_of(self, name: Name, obj: T) -> list[tuple[str, str]]:
        return [(index, key) for index, keys in self._indexes.items() for key in keys(name, obj)]


def name_of(obj: Json) -> Name:
    """Return an object's namespace and name."""
    metadata = metadata_of(obj)
    return text(metadata.get("namespace")), text(metadata.get("name"))


def _version(obj: Json) -> int:
    # Resource versions of one kind can be compared as numbers: Kubernetes guarantees it from 1.35 on, and etcd has always
    # counted them so.
    version = text(metadata_of(obj).get("resourceVersion"))
    return int(version) if _VERSION.fullmatch(version) else 0
