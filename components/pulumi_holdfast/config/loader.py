"""Loads documents: parses YAML, validates models, and collects every problem of a document."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar, cast

import yaml
from pydantic import ValidationError

from pulumi_holdfast.config import naming
from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.errors import shape_problems
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import Json, JsonValue

#: The key of the structured value in a stack file, and the root of every path in a problem.
PLATFORM: Final = "holdfast:platform"

P = TypeVar("P", bound=Section)


def read_section(model: type[P], document: Json, rules: Callable[[Json], Iterable[Problem]]) -> P:
    """Parse a document as a `model` and check it with `rules`, which get the unparsed document.

    Raises ConfigError with every problem: of single values, and across the fields that could be parsed.
    """
    problems: list[Problem] = []
    read: P | None = None
    try:
        # From JSON, the strict parser accepts a list for a tuple and a text for an enum member, and no other conversion.
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
    """The valid items of a list by index; `names` has the name of every item, valid or not, that has one."""

    count: int
    items: Mapping[int, S]
    names: Mapping[int, str]
    is_list: bool

    @property
    def complete(self) -> bool:
        """Whether every item of the list is valid."""
        return self.is_list and len(self.items) == self.count

    def may_hold(self, name: str) -> bool:
        """Whether an item that could not be parsed may have this name."""
        unread = [self.names.get(index, "") for index in range(self.count) if index not in self.items]
        # An invalid name may stand for the label that is closest to it.
        meant = {naming.as_dns_label(found) for found in unread}
        return not self.is_list or "" in meant or name in {*unread, *meant}

    def without(self, indexes: Collection[int]) -> Parts[S]:
        """A copy in which these items count as invalid."""
        return replace(
            self, items={index: item for index, item in self.items.items() if index not in indexes}
        )


def read_parts(model: type[S], document: JsonValue) -> Parts[S]:
    """Parse the valid items of a list of `model`."""
    entries = document if isinstance(document, list | tuple) else ()
    items = {index: item for index, entry in enumerate(entries) if (item := _read(model, entry)) is not None}
    names = {
        index: name
        for index, entry in enumerate(entries)
        if isinstance(entry, Mapping) and isinstance(name := entry.get("name"), str)
    }
    return Parts(count=len(entries), items=items, names=names, is_list=isinstance(document, list | tuple))


def read_part(model: type[S], document: Json, key: str) -> S | None:
    """Parse one section of a document: all defaults if it is missing, None if it is invalid."""
    return _read(model, document.get(key, {}))


def _read(model: type[S], entry: JsonValue) -> S | None:
    try:
        return model.model_validate_json(json.dumps(entry))
    except ValidationError:
        return None


class _UniqueKeys(yaml.SafeLoader):
    """Rejects duplicate keys, which PyYAML accepts and the engine does not."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key, _ in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value} is duplicated", key.start_mark
                    )
                seen.add(key.value)
        return cast("dict[Hashable, object]", super().construct_mapping(node, deep))


def load_yaml(text: str) -> object:
    """The content of a YAML text. Raises yaml.YAMLError."""
    return yaml.load(text, _UniqueKeys)  # noqa: S506 - a safe loader
