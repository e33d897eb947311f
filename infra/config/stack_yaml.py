"""YAML as the engine reads it: a key that stands twice in a mapping is a mistake, and not the last of the two."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import yaml

if TYPE_CHECKING:
    from collections.abc import Hashable


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
