"""Reads the generated classes of an SDK from its source, without importing it.

An import takes a second for each cloud, and is not safe here: up to Python 3.11.8 the SDKs' lazy loading fails when the
program uses a module on another thread while it is loaded. Annotations are not parsed with `ast`, because concurrent
parsers in Python 3.11 raise "AST constructor recursion depth mismatch".
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

# The start of a top-level statement in a generated file; docstrings are indented.
_BOUNDARY = re.compile(
    r"^(?:class (?P<name>\w+)(?:\((?P<bases>[^)]*)\))?:|@|if |else:|elif |def |from |import |[A-Za-z_]\w* = )",
    re.MULTILINE,
)
_SIBLING = re.compile(r"^from \.\. import (?P<folder>\w+)(?: as (?P<alias>\w+))?$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class SdkClass:
    """A class in an SDK's source."""

    name: str
    file: Path
    bases: str

    @property
    def is_resource(self) -> bool:
        """Whether it is a resource or a component."""
        return "Resource" in self.bases

    @property
    def is_enum(self) -> bool:
        """Whether it is an enum of scalar values."""
        return "Enum" in self.bases

    @property
    def text(self) -> str:
        """The source of the class."""
        _, start, end = _index(self.file)[self.name]
        return _read(self.file)[start:end]


def find_in(file: Path, name: str) -> SdkClass | None:
    """Return a class of a file by name, None where it does not exist."""
    found = _index(file).get(name)
    return SdkClass(name=name, file=file, bases=found[0]) if found else None


def find_resource(folder: Path, name: str) -> SdkClass | None:
    """Return a resource class of a module folder; its file has its name in snake case."""
    file = _files_by_class(folder).get(_folded(name))
    return find_in(file, name) if file else None


def resolve(dotted: str, seen_from: Path) -> SdkClass | None:
    """Return the class of a name in an annotation of a file, None where it cannot be resolved."""
    *prefix, name = dotted.split(".")
    return next(
        (
            found
            for file in _candidates(prefix, name, seen_from)
            if (found := find_in(file, name)) is not None
        ),
        None,
    )


def _candidates(prefix: list[str], name: str, seen_from: Path) -> Iterator[Path]:
    folder = seen_from.parent
    if not prefix:
        yield from (seen_from, folder / "_inputs.py", folder / "_enums.py")
    elif prefix[0].startswith("pulumi_"):
        folder = _package_root(folder).parent.joinpath(*(part for part in prefix if part != "outputs"))
    elif prefix[0] != "outputs":
        folder = _siblings(seen_from).get(prefix[0], folder)
    if prefix and prefix[-1] != "outputs":
        yield from (folder / "_inputs.py", folder / "_enums.py")
    if prefix and prefix[-1] == "outputs":
        yield folder / "outputs.py"
    elif _folded(name) in _files_by_class(folder):
        yield _files_by_class(folder)[_folded(name)]


def _package_root(folder: Path) -> Path:
    return next((one for one in (folder, *folder.parents) if one.name.startswith("pulumi_")), folder)


@cache
def _index(file: Path) -> Mapping[str, tuple[str, int, int]]:
    """Return the bases, start and end of each class of a file, without parsing its 4 MB."""
    if not file.is_file():
        return {}
    text = _read(file)
    marks = list(_BOUNDARY.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return {
        mark["name"]: (mark["bases"] or "", mark.start(), end)
        for mark, end in zip(marks, ends, strict=True)
        if mark["name"]
    }


@cache
def _siblings(file: Path) -> Mapping[str, Path]:
    root = file.parent.parent
    return {mark["alias"] or mark["folder"]: root / mark["folder"] for mark in _SIBLING.finditer(_read(file))}


@cache
def _files_by_class(folder: Path) -> Mapping[str, Path]:
    return {_folded(file.stem): file for file in folder.glob("*.py")}


def _folded(name: str) -> str:
    """Return a key that is equal for a class and for its file in snake case."""
    return name.replace("_", "").lower()


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


_TOKEN = re.compile(r"[\w.]+|\[|\]|,")


@dataclass(frozen=True, kw_only=True)
class Hint:
    """An annotation: a name such as `Optional` or `outputs.ClusterVpcConfig`, with the arguments in brackets."""

    name: str
    arguments: tuple["Hint", ...] = ()

    @property
    def last(self) -> str:
        """The name without its modules."""
        return self.name.rpartition(".")[2]


def parse_hint(text: str) -> Hint:
    """Return an annotation as a tree; quotes are ignored."""
    (hint,) = _parse_list(_tokens(text))
    return hint


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)[::-1]


def _parse_list(tokens: list[str]) -> tuple[Hint, ...]:
    """Parse hints up to the closing bracket or the end; `tokens` are in reverse order."""
    return tuple(_parse_each(tokens))


def _parse_each(tokens: list[str]) -> Iterator[Hint]:
    while tokens:
        token = tokens.pop()
        if token == "]":  # noqa: S105 - a bracket, not a password
            return
        if token != ",":  # noqa: S105 - nor is a comma one
            has_arguments = bool(tokens) and tokens[-1] == "["
            if has_arguments:
                tokens.pop()
            yield Hint(name=token, arguments=_parse_list(tokens) if has_arguments else ())


class ValueKind(Enum):
    """The kind of a value, with its name in error messages."""

    STRING = "a string"
    NUMBER = "a number"
    BOOL = "a boolean"
    LIST = "a list"
    MAP = "a map"
    OBJECT = "an object"
    ANY = "anything"


@dataclass(frozen=True, kw_only=True)
class PropertyType:
    """One type of a property: with `item` for a list or map, `shape` for an object, `values` for an enumeration."""

    kind: ValueKind
    item: tuple["PropertyType", ...] = ()
    shape: SdkClass | None = None
    values: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Property:
    """A property by its wire name, of one of `types`; a `required` output is always set."""

    name: str
    types: tuple[PropertyType, ...]
    required: bool

    @property
    def kinds(self) -> frozenset[ValueKind]:
        """The allowed kinds of values."""
        return frozenset(one.kind for one in self.types)


@dataclass(frozen=True, kw_only=True)
class ResourceSchema:
    """A resource type: its token, its input and output properties by name."""

    token: str
    package: str
    version: str
    inputs: Mapping[str, Property]
    outputs: Mapping[str, Property]


# Between the getter decorator and its function there may be another one, such as a deprecation.
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

_ENUM_VALUE = re.compile(r'^    [A-Z_]\w* = "([^"]*)"$', re.MULTILINE)

_SCALARS = {
    "str": ValueKind.STRING,
    "bool": ValueKind.BOOL,
    "int": ValueKind.NUMBER,
    "float": ValueKind.NUMBER,
}
_WRAPPERS = frozenset({"Input", "InputType", "Output", "Awaitable", "Optional", "Union"})
_LISTS = frozenset({"Sequence", "List"})
_MAPS = frozenset({"Mapping", "Dict"})
_ANY = PropertyType(kind=ValueKind.ANY)


@cache
def argument_properties(cls: SdkClass) -> Mapping[str, Property]:
    """Return the properties of an argument class; those without a default in its constructor are required."""
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
    """Return the properties of a resource or output class; those that are not Optional are required."""
    return {
        wire: Property(name=wire, types=_alternatives(hint, cls.file), required=not _is_optional(hint))
        for _, wire, hint in _getters(cls.text)
    }


def _getters(text: str) -> Iterator[tuple[str, str, Hint]]:
    """Yield (Python name, wire name, annotation) of each property."""
    for found in _GETTER.finditer(text):
        yield found["python"], found["wire"] or found["python"], parse_hint(found["hint"])


def _members(hint: Hint) -> Iterator[Hint]:
    """Yield the alternatives of a hint, without Input, Output, Optional and unions."""
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
        return PropertyType(kind=ValueKind.LIST, item=_alternatives(hint.arguments[0], file))
    if hint.last in _MAPS:
        return PropertyType(kind=ValueKind.MAP, item=_alternatives(hint.arguments[1], file))
    if hint.last in _SCALARS:
        return PropertyType(kind=_SCALARS[hint.last])
    return _classify_class(resolve(hint.name, file))


def _classify_class(found: SdkClass | None) -> PropertyType:
    if found is None or found.is_resource:
        return _ANY
    if found.is_enum:
        if "str" not in found.bases:
            return PropertyType(kind=ValueKind.NUMBER)
        return PropertyType(kind=ValueKind.STRING, values=tuple(_ENUM_VALUE.findall(found.text)))
    return PropertyType(kind=ValueKind.OBJECT, shape=found)
