"""Reads a document in two phases: its shape, by the models, with every problem at once; then the rules, on what was parsed.

Paths in it are relative to the project's directory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast, overload

import yaml
from pydantic import ValidationError

from pulumi_holdfast.config.errors import format_value, path, shape_problems
from pulumi_holdfast.config.fields import Placeholders, Section
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import Json, JsonValue

if TYPE_CHECKING:
    from pulumi_holdfast.config.errors import Place

#: The key of the structured value in a stack file, and the root of every path in a problem.
PLATFORM: Final = "holdfast:platform"

P = TypeVar("P", bound=Section)


def parse(model: type[P], document: Json, settings: Mapping[str, JsonValue] | None = None) -> P:
    """A document as a `model`; `settings` are the values beside it, by the keys of the provider; None is not set.

    In a program the fields that are `OR_OUTPUT` may be Outputs. Raises ConfigError with every problem of the shape.
    """
    placeholders = Placeholders()
    problems = [_misplaced(key, value) for key, value in document.items() if ":" in key]
    beside = {key: value for key, value in (settings or {}).items() if value is not None}
    try:
        # From JSON, the strict parser accepts a list for a tuple and a text for an enum member, and no other conversion.
        inside = {key: value for key, value in document.items() if ":" not in key}
        text = json.dumps({**inside, **beside}, default=placeholders.text_of)
        read = model.model_validate_json(text, context=placeholders)
    except ValidationError as error:
        raise ConfigError([*problems, *shape_problems(model, error, PLATFORM)]) from None
    return checked(read, [*problems, *_unknown_problems(json.loads(text), placeholders.unused)])


def _unknown_problems(value: JsonValue, unused: Collection[str], place: Place = ()) -> Iterator[Problem]:
    """The placeholders at fields that take no Output, but any text."""
    if isinstance(value, str) and value in unused:
        allowed = "a value that the program knows when it starts: it decides what is registered"
        yield Problem(path(PLATFORM, place), "an Output", allowed, "Write the value itself.")
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for step, child in children:
        yield from _unknown_problems(child, unused, (*place, step))


def checked(platform: P, problems: Iterable[Problem]) -> P:
    """A parsed platform that has no problems. Raises ConfigError with every one of them."""
    found = tuple(problems)
    if found:
        raise ConfigError(found)
    return platform


def _misplaced(key: str, value: JsonValue) -> Problem:
    return Problem(
        field=f"{PLATFORM}.{key}",
        value=f"a provider's setting (with {format_value(value)})",
        allowed=f"{key} beside {PLATFORM}",
        fix=f"Move it out of {PLATFORM}.",
    )


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


#: Values that a stack file may have after its aliases are replaced: the largest in `stacks/` has a few hundred. Nine levels of nine
#: aliases are 400 bytes and 387 million values.
_MOST_VALUES: Final = 100_000


def load_yaml(text: str) -> object:
    """The content of a YAML text. Raises yaml.YAMLError, also for aliases that expand beyond 100,000 values."""
    loader = _UniqueKeys(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _expanded(node, {}) > _MOST_VALUES:
            raise yaml.constructor.ConstructorError(
                None, None, f"the aliases expand to more than {_MOST_VALUES:,} values", node.start_mark
            )
        return cast("Callable[[yaml.Node], object]", loader.construct_document)(node)  # pyright: ignore[reportUnknownMemberType] - no types
    finally:
        loader.dispose()


def _expanded(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many values a node has with its aliases replaced. One that contains itself is refused where it becomes JSON."""
    if id(node) not in sizes:
        sizes[id(node)] = 1
        children = (
            [each for pair in node.value for each in pair]
            if isinstance(node, yaml.MappingNode)
            else node.value
            if isinstance(node, yaml.SequenceNode)
            else []
        )
        sizes[id(node)] += sum(_expanded(child, sizes) for child in cast("list[yaml.Node]", children))
    return sizes[id(node)]


_PROJECT: Final = Path(__file__).resolve().parents[3]


def in_project(path: str) -> str:
    """The absolute path of a path in the project, whatever the working directory."""
    return str(_PROJECT / path)


def from_program(path: Path) -> str:
    """A path of the project, relative to the working directory, so that each checkout gives the same inputs; others unchanged."""
    project = find_project()
    return os.path.relpath(path) if project is not None and path.is_relative_to(project) else str(path)


def find_project() -> Path | None:
    """The folder with Pulumi.yaml around the current directory, None outside of a project."""
    here = Path.cwd()
    return next((each for each in (here, *here.parents) if (each / "Pulumi.yaml").is_file()), None)


def stack_file(stack: str) -> Path:
    """The file of a stack: in the project around the current directory, otherwise in the one of this module."""
    return (find_project() or _PROJECT) / "stacks" / f"Pulumi.{stack}.yaml"


@overload
def chart_source(source: str) -> str: ...
@overload
def chart_source(source: None) -> None: ...
@overload
def chart_source(source: str | None) -> str | None: ...
def chart_source(source: str | None) -> str | None:
    """Where charts come from: an address unchanged, a directory of the project, None for upstream."""
    return source if source is None or "://" in source else from_program(Path(in_project(source)))
