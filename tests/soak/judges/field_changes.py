"""Changes of single fields: what the simulator and the real provider say of each, in place or replaced."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias, cast

from pulumi_holdfast.rehearsal.clouds.catalogue import ResourceType, Rules, catalogue_of
from pulumi_holdfast.rehearsal.clouds.provider import resource_diff, with_name
from pulumi_holdfast.rehearsal.clouds.schema import Schema
from pulumi_holdfast.rehearsal.engine.values import Properties
from tests.support.fakes.pulumi_engine import Recorded

Inputs: TypeAlias = "Mapping[str, object]"
Path: TypeAlias = "tuple[str | int, ...]"

_SEED: Final = b"judges"
_OF_THE_PROVIDER: Final = ("location", "project", "region")


@dataclass(frozen=True, kw_only=True)
class FieldChange:
    """A resource with another value of one field, or without it."""

    token: str
    name: str
    path: str
    old: Inputs
    new: Inputs
    removes: bool


def resource_type(token: str) -> ResourceType:
    """Return the simulator's rules of a type."""
    cloud = token.partition(":")[0]
    catalogue = catalogue_of(cloud)
    return ResourceType(
        schema=Schema.for_package(cloud).resource(token),
        rules=catalogue.resources.get(token, Rules()),
        catalogue=catalogue,
    )


def named(one: Recorded) -> Inputs:
    """Return the inputs of a resource with the name that the provider generates from the logical one."""
    properties = cast("Properties", {key: value for key, value in one.inputs.items() if value is not None})
    return with_name(resource_type(one.type), one.name, inputs=properties, old_inputs={}, seed=_SEED)


def is_replaced(change: FieldChange) -> bool:
    """Whether the simulator replaces the resource."""
    old, new = cast("Properties", change.old), cast("Properties", change.new)
    return bool(resource_diff(resource_type(change.token), change.name, old=old, new=new).replaces)


def field_changes(resources: Iterable[Recorded]) -> Iterator[FieldChange]:
    """Yield two changes of each field that a type's resources set: to another value, and without the field."""
    examples: dict[tuple[str, str], tuple[Recorded, Path]] = {}
    values: dict[tuple[str, str], list[object]] = {}
    for one in resources:
        for path, value in _leaves(one.inputs):
            key = (one.type, ".".join(step for step in path if isinstance(step, str)))
            examples.setdefault(key, (one, path))
            values.setdefault(key, []).append(value)
    for (token, title), (one, path) in examples.items():
        inputs = named(one)
        given = _at(inputs, path)
        others = (value for value in values[token, title] if json.dumps(value) != json.dumps(given))
        another = next(others, None)
        change = partial(FieldChange, token=token, name=one.name, path=title, old=inputs)
        yield change(new=_with(inputs, path, _another(given) if another is None else another), removes=False)
        if not _is_filled_in(token, title):
            yield change(new=_with(inputs, path, None), removes=True)


def _is_filled_in(token: str, path: str) -> bool:
    """Whether the provider sets a field that a program leaves out: by its configuration, or with a new name."""
    own = resource_type(token).name_property
    return path in (*_OF_THE_PROVIDER, own, f"{own}Prefix")


def _another(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value[:-1]}{'a' if value[-1:] != 'a' else 'b'}"
    return [] if isinstance(value, list) else {}


def _leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield each field with a value that is no object; the first item stands for a list of objects."""
    if isinstance(value, dict) and value:
        for name, one in cast("dict[str, object]", value).items():
            yield from _leaves(one, (*path, name))
    elif isinstance(value, list) and value and isinstance(cast("list[object]", value)[0], dict):
        yield from _leaves(cast("list[object]", value)[0], (*path, 0))
    elif value is not None:
        yield path, value


def _at(value: object, path: Sequence[str | int]) -> object:
    for step in path:
        value = cast("dict[str | int, object]", value)[step]
    return value


def _with(inputs: Inputs, path: Path, value: object) -> Inputs:
    copy = deepcopy(dict(inputs))
    owner = cast("dict[str | int, object]", _at(copy, path[:-1]))
    if value is None:
        del owner[path[-1]]
    else:
        owner[path[-1]] = value
    return copy
