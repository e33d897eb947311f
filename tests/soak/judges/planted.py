"""Plants mistakes in the inputs of resources, to measure which of them a judge sees."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeAlias, cast

Inputs: TypeAlias = dict[str, object]
# The keys of these are values of the user.
_OF_THE_USER = frozenset({"tags", "labels", "nodeLabels", "resourceLabels", "metadata", "requiredClaims"})
#: Returns what a judge says of a resource's inputs.
Judge: TypeAlias = Callable[[Mapping[str, object]], list[str]]


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """The inputs of a resource with one mistake: what kind of mistake, and in which field."""

    kind: str
    path: str
    inputs: Inputs


def mistakes(inputs: Mapping[str, object]) -> Iterator[Mistake]:
    """Yield one mistake of each kind in each field that a resource sets, also in nested objects."""
    for path in _paths(dict(inputs), ()):
        name, value = str(path[-1]), _at(inputs, path)
        dotted = ".".join(map(str, path))
        yield Mistake(kind="misspelled name", path=dotted, inputs=_renamed(inputs, path, f"{name}x"))
        yield Mistake(kind="missing", path=dotted, inputs=_renamed(inputs, path, None))
        wrong: object = {"no": "such"} if not isinstance(value, dict) else "text"
        yield Mistake(kind="wrong kind", path=dotted, inputs=_with(inputs, path, wrong))
        if isinstance(value, str):
            yield Mistake(kind="wrong text", path=dotted, inputs=_with(inputs, path, "~"))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield Mistake(kind="wrong number", path=dotted, inputs=_with(inputs, path, -1_000_000))


def _paths(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all fields."""
    if isinstance(value, dict):
        for name, one in cast("dict[str, object]", value).items():
            if one is None:
                continue
            yield (*path, name)
            if name not in _OF_THE_USER:
                yield from _paths(one, (*path, name))
    elif isinstance(value, list):
        for index, one in enumerate(cast("list[object]", value)):
            yield from _paths(one, (*path, index))


def _at(inputs: object, path: tuple[str | int, ...]) -> object:
    for step in path:
        inputs = cast("dict[str | int, object]", inputs)[step]
    return inputs


def _with(inputs: Mapping[str, object], path: tuple[str | int, ...], value: object) -> Inputs:
    copy = deepcopy(dict(inputs))
    cast("Inputs", _at(copy, path[:-1]))[str(path[-1])] = value
    return copy


def _renamed(inputs: Mapping[str, object], path: tuple[str | int, ...], name: str | None) -> Inputs:
    """Return the inputs with another name of a field, or without the field."""
    copy = deepcopy(dict(inputs))
    owner = cast("Inputs", _at(copy, path[:-1]))
    value = owner.pop(str(path[-1]))
    if name is not None:
        owner[name] = value
    return copy
