"""The parts of a document that can be read while others cannot.

One wrong field must not hide a second mistake elsewhere: the rules across fields look at each part that can be read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ValidationError

from infra.config.section import Section
from scheduling.json import JsonValue

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, kw_only=True)
class Parts(Generic[S]):
    """A list's readable items by their place; `names` holds every item's name that is a text, readable or not."""

    count: int
    items: Mapping[int, S]
    names: Mapping[int, str]

    @property
    def unread_names(self) -> frozenset[str]:
        """Names of the items that could not be read."""
        return frozenset(name for index, name in self.names.items() if index not in self.items)


def read_parts(model: type[S], document: JsonValue) -> Parts[S]:
    """Read what can be read of a list of `model`; nothing where the document is no list."""
    entries = document if isinstance(document, list | tuple) else ()
    items = {index: item for index, entry in enumerate(entries) if (item := _read(model, entry)) is not None}
    names = {
        index: name
        for index, entry in enumerate(entries)
        if isinstance(entry, Mapping) and isinstance(name := entry.get("name"), str)
    }
    return Parts(count=len(entries), items=items, names=names)


def _read(model: type[S], entry: JsonValue) -> S | None:
    try:
        return model.model_validate_json(json.dumps(entry))
    except ValidationError:
        return None
