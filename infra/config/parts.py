"""The parts of a document that can be read while others cannot.

One wrong field must not hide a second mistake elsewhere: the rules across fields look at each part that can be read.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pydantic import ValidationError

from holdfast.infra import naming
from holdfast.infra.config.section import Section
from holdfast.scheduling.json import Json, JsonValue

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, kw_only=True)
class Parts(Generic[S]):
    """A list's readable items by their place; `names` holds every item's name that is a text, readable or not."""

    count: int
    items: Mapping[int, S]
    names: Mapping[int, str]
    is_list: bool

    @property
    def complete(self) -> bool:
        """Whether the whole list could be read."""
        return self.is_list and len(self.items) == self.count

    def may_hold(self, name: str) -> bool:
        """Whether an item that could not be read may be the one of this name."""
        unread = [self.names.get(index, "") for index in range(self.count) if index not in self.items]
        # What a refused name was meant to be is known where a label can be made of it.
        meant = {naming.as_dns_label(found) for found in unread}
        return not self.is_list or "" in meant or name in {*unread, *meant}

    def without(self, indexes: Collection[int]) -> "Parts[S]":
        """The same with these items taken for unread."""
        return replace(
            self, items={index: item for index, item in self.items.items() if index not in indexes}
        )


def read_parts(model: type[S], document: JsonValue) -> Parts[S]:
    """Read what can be read of a list of `model`."""
    entries = document if isinstance(document, list | tuple) else ()
    items = {index: item for index, entry in enumerate(entries) if (item := _read(model, entry)) is not None}
    names = {
        index: name
        for index, entry in enumerate(entries)
        if isinstance(entry, Mapping) and isinstance(name := entry.get("name"), str)
    }
    return Parts(count=len(entries), items=items, names=names, is_list=isinstance(document, list | tuple))


def read_part(model: type[S], document: Json, key: str) -> S | None:
    """Read one section of a document: all defaults where it is left out, None where it cannot be read."""
    return _read(model, document.get(key, {}))


def _read(model: type[S], entry: JsonValue) -> S | None:
    try:
        return model.model_validate_json(json.dumps(entry))
    except ValidationError:
        return None
