"""Reads a document into a model, or says everything that is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

import yaml
from pydantic import ValidationError

from holdfast.infra import naming
from holdfast.infra.config.base import Section
from holdfast.infra.config.errors import shape_problems
from holdfast.scheduling.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Hashable

    from holdfast.scheduling.json import Json, JsonValue


#: The key of the one structured value in a stack file; the root of every path in a refusal.
PLATFORM: Final = "holdfast:platform"

P = TypeVar("P", bound=Section)


def read_section(model: type[P], document: Json, rules: Callable[[Json], Iterable[Problem]]) -> P:
    """Read a document as a `model` that also keeps `rules`, which get the document as it was written.

    Raises ConfigError with every problem: of single values, and across fields as far as these could be read.
    """
    problems: list[Problem] = []
    read: P | None = None
    try:
        # Through JSON, where the strict parser takes a list for a tuple and a text for a member, and nothing else.
        read = model.model_validate_json(json.dumps(document))
    except ValidationError as error:
        problems.extend(shape_problems(model, error, PLATFORM))
    problems.extend(rules(document))
    if read is None or problems:
        raise ConfigError(problems)
    return read


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

    def without(self, indexes: Collection[int]) -> Parts[S]:
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


class _UniqueKeys(yaml.SafeLoader):
    """Refuses what PyYAML passes over, and the engine would not."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key, _ in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value} stands there twice", key.start_mark
                    )
                seen.add(key.value)
        return cast("dict[Hashable, object]", super().construct_mapping(node, deep))


def load_yaml(text: str) -> object:
    """What a YAML text holds. Raises yaml.YAMLError."""
    return yaml.load(text, _UniqueKeys)  # noqa: S506 - a safe loader
