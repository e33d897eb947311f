"""Reads property shapes from the annotations of an SDK's generated classes.

The one place that knows how Pulumi's Python SDKs spell a property: a getter that carries the wire name,
annotated `Input[Optional[T]]` on argument classes and `Output[Optional[T]]` on resources.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from holdfast.simulator.clouds.schema.hints import Hint, parse_hint
from holdfast.simulator.clouds.schema.source import SdkClass, resolve
from holdfast.simulator.clouds.schema.types import Kind, Property, PropertyType

# Between the getter's mark and its function there may be another: a deprecation, over several lines.
_GETTER = re.compile(
    r'^    @pulumi\.getter(?:\(name="(?P<wire>[^"]+)"\))?\n'
    r"(?:(?!    def ).*\n)*?"
    r"    def (?P<python>\w+)\(self\) -> (?P<hint>.+):$",
    re.MULTILINE,
)
_CONSTRUCTOR = re.compile(
    r"^    def __init__\(__self__, \*,\n(?P<parameters>.*?)\):\n", re.MULTILINE | re.DOTALL
)
_REQUIRED_PARAMETER = re.compile(r"^ +(?P<name>\w+): [^=\n]+$", re.MULTILINE)

_SCALARS = {"str": Kind.STRING, "bool": Kind.BOOL, "int": Kind.NUMBER, "float": Kind.NUMBER}
_WRAPPERS = frozenset({"Input", "InputType", "Output", "Awaitable", "Optional", "Union"})
_LISTS = frozenset({"Sequence", "List"})
_MAPS = frozenset({"Mapping", "Dict"})
_ANY = PropertyType(kind=Kind.ANY)


@cache
def argument_properties(cls: SdkClass) -> Mapping[str, Property]:
    """Return the properties of an argument class; required is what its constructor does not default."""
    text = cls.text
    constructor = _CONSTRUCTOR.search(text)
    parameters = constructor["parameters"] if constructor else ""
    required = {found["name"] for found in _REQUIRED_PARAMETER.finditer(parameters)}
    return {
        wire: Property(name=wire, types=_alternatives(hint, cls.file), required=python in required)
        for python, wire, hint in _getters(text)
    }


@cache
def output_properties(cls: SdkClass) -> Mapping[str, Property]:
    """Return the properties of a resource or output class; required is what is not optional."""
    return {
        wire: Property(name=wire, types=_alternatives(hint, cls.file), required=not _is_optional(hint))
        for _, wire, hint in _getters(cls.text)
    }


def _getters(text: str) -> Iterator[tuple[str, str, Hint]]:
    """Yield (Python name, wire name, annotation) of each property."""
    for found in _GETTER.finditer(text):
        yield found["python"], found["wire"] or found["python"], parse_hint(found["hint"])


def _members(hint: Hint) -> Iterator[Hint]:
    """Yield what a hint allows, through Input, Output, Optional and unions."""
    if hint.last not in _WRAPPERS:
        yield hint
        return
    for argument in hint.arguments:
        yield from _members(argument)


def _is_optional(hint: Hint) -> bool:
    if hint.last not in _WRAPPERS:
        return False
    return hint.last == "Optional" or any(map(_is_optional, hint.arguments))


def _alternatives(hint: Hint, file: Path) -> tuple[PropertyType, ...]:
    return tuple(dict.fromkeys(_classify(member, file) for member in _members(hint)))


def _classify(hint: Hint, file: Path) -> PropertyType:
    if hint.last in _LISTS:
        return PropertyType(kind=Kind.LIST, item=_alternatives(hint.arguments[0], file))
    if hint.last in _MAPS:
        return PropertyType(kind=Kind.MAP, item=_alternatives(hint.arguments[1], file))
    if hint.last in _SCALARS:
        return PropertyType(kind=_SCALARS[hint.last])
    return _classify_class(resolve(hint.name, file))


def _classify_class(found: SdkClass | None) -> PropertyType:
    if found is None or found.is_resource:
        return _ANY
    if found.is_enum:
        return PropertyType(kind=Kind.STRING if "str" in found.bases else Kind.NUMBER)
    return PropertyType(kind=Kind.OBJECT, shape=found)
