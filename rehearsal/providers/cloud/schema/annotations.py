"""Reads property shapes from the annotations of an SDK's generated classes.

The one place that knows how Pulumi's Python SDKs spell a property: a getter that carries the wire name,
annotated `Input[Optional[T]]` on argument classes and `Output[Optional[T]]` on resources.
"""

import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import cast

import pulumi

from rehearsal.providers.cloud.schema.types import Kind, Property, PropertyType

# Set on each getter by `pulumi.getter`.
_WIRE_NAME = "_pulumi_name"
_SCALARS: Mapping[type[object], Kind] = {
    str: Kind.STRING,
    bool: Kind.BOOL,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
}
_ANY = PropertyType(kind=Kind.ANY)


class _Open:
    """Stands for the T of `Input[T]`: one branch of that union is the text "Output[T]", whose T stays open."""


_NAMES: dict[str, object] = {"Output": pulumi.Output, "T": _Open}


@cache
def argument_properties(cls: type) -> Mapping[str, Property]:
    """Return the properties of an argument class; required is what its constructor does not default."""
    parameters = inspect.signature(cls).parameters
    return {
        wire: Property(
            name=wire,
            types=_alternatives(hint),
            required=python in parameters and parameters[python].default is inspect.Parameter.empty,
        )
        for python, wire, hint in _getters(cls)
    }


@cache
def output_properties(cls: type) -> Mapping[str, Property]:
    """Return the properties of a resource or output class; required is what is not optional."""
    return {
        wire: Property(name=wire, types=_alternatives(hint), required=type(None) not in set(_members(hint)))
        for _, wire, hint in _getters(cls)
    }


def _getters(cls: type[object]) -> Iterator[tuple[str, str, object]]:
    """Yield (Python name, wire name, annotation) of each property; generated classes inherit none but id and urn.

    Hints are resolved where the class is defined: `pulumi.getter` may have put its own function in between.
    """
    module = vars(sys.modules[cls.__module__])
    for python, member in vars(cls).items():
        getter: Callable[..., object] | None = member.fget if isinstance(member, property) else None
        wire = cast("str | None", getattr(getter, _WIRE_NAME, None))
        if getter is not None and wire is not None:
            hints = typing.get_type_hints(getter, globalns=module, localns=_NAMES)
            yield python, wire, hints.get("return", object)


def _members(hint: object) -> Iterator[object]:
    """Yield what a hint allows, through unions, Output and Awaitable."""
    origin = typing.get_origin(hint)
    name = getattr(origin, "__name__", "")
    if origin in (typing.Union, types.UnionType) or name in ("Output", "Awaitable"):
        for member in typing.get_args(hint):
            yield from _members(member)
    elif hint is not _Open:
        yield hint


def _alternatives(hint: object) -> tuple[PropertyType, ...]:
    found = (_classify(member) for member in _members(hint))
    return tuple(dict.fromkeys(one for one in found if one is not None))


def _classify(hint: object) -> PropertyType | None:
    """Return the shape of one union member, None for what adds none: None itself, a typed-dict twin."""
    if hint is type(None) or typing.is_typeddict(hint):
        return None
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin in (Sequence, list):
        return PropertyType(kind=Kind.LIST, item=_alternatives(arguments[0]))
    if origin in (Mapping, dict):
        return PropertyType(kind=Kind.MAP, item=_alternatives(arguments[1]))
    return _classify_class(cast("type[object]", hint)) if isinstance(hint, type) else _ANY


def _classify_class(cls: type[object]) -> PropertyType:
    if cls in _SCALARS:
        return PropertyType(kind=_SCALARS[cls])
    if issubclass(cls, Enum):
        return PropertyType(kind=Kind.STRING if issubclass(cls, str) else Kind.NUMBER)
    if issubclass(cls, pulumi.Resource):
        return PropertyType(kind=Kind.REFERENCE, shape=cls)
    if next(_getters(cls), None) is not None:
        return PropertyType(kind=Kind.OBJECT, shape=cls)
    return _ANY
