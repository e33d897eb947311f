"""What a section's fields allow, as text, and the problems of a document that does not parse: field, value, allowed, fix."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, Union, cast, get_args, get_origin

import yaml
from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from pulumi_holdfast.config.fields import WITH_FIX, Allowed, Section
from pulumi_holdfast.ladder.errors import Problem

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

Place: TypeAlias = Sequence[str | int]

_LONGEST_VALUE: Final = 80


def path(root: str, place: Place) -> str:
    """`holdfast:platform`, `("pools", 2, "capacity")` → `holdfast:platform.pools[2].capacity`; a provider's key stays."""
    if place and ":" in str(place[0]):
        return str(place[0])
    return root + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)


def format_value(value: object) -> str:
    """A value as JSON, shortened if it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def words(parts: Collection[str], joint: str = "or") -> str:
    """`a`, `b`, `c` → `a, b or c`."""
    *first, last = parts
    return f"{', '.join(first)} {joint} {last}" if first else last


def allowed(kind: object, metadata: Sequence[object] = ()) -> str:
    """What a field's type allows, with its ranges and lengths."""
    if get_origin(kind) is Annotated:
        kind, *inner = get_args(kind)
        return allowed(kind, (*inner, *metadata))
    notes = [
        part for each in metadata for part in (each.metadata if isinstance(each, FieldInfo) else (each,))
    ]
    said = next((note.text for note in notes if isinstance(note, Allowed)), None)
    if said is not None:
        return said
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        parts = dict.fromkeys(allowed(part, metadata) for part in arguments if part is not NoneType)
        return "; or ".join(parts)
    if origin is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        return words([f"{member}" for member in _members(kind) if f"{member}"])
    if kind is bool:
        return "true or false"
    if kind in (int, float):
        return f"a {'whole ' if kind is int else ''}number{_range(notes)}"
    if origin is tuple:
        inner = arguments[0]
        each = "" if inner is str else f", each {allowed(inner)}"
        return f"a list{_length(notes)}{each}"
    if isinstance(kind, type) and issubclass(kind, Section):
        return f"a mapping of {', '.join(kind.field_names()) or 'nothing'}"
    return f"a mapping{_length(notes)}" if origin is not None else "a text"


def _members(kind: object) -> list[object]:
    return (
        [each.value for each in cast("type[Enum]", kind)] if isinstance(kind, type) else list(get_args(kind))
    )


def _range(notes: Sequence[object]) -> str:
    least = next((note.ge for note in notes if isinstance(note, Ge)), None)
    above = next((note.gt for note in notes if isinstance(note, Gt)), None)
    most = next((note.le for note in notes if isinstance(note, Le)), None)
    below = next((note.lt for note in notes if isinstance(note, Lt)), None)
    first = f"above {above}" if above is not None else "" if least is None else f"{least}"
    last = f"below {below}" if below is not None else "" if most is None else f"{most}"
    if first and last:
        return f", {first}{', up to ' if above is not None else ' to '}{last}"
    return f", {first or last}{' or more' if least is not None else ''}" if first or last else ""


def _length(notes: Sequence[object]) -> str:
    least = next((note.min_length for note in notes if isinstance(note, MinLen)), 0)
    most = next((note.max_length for note in notes if isinstance(note, MaxLen)), None)
    if most is not None:
        return f" of {f'{least} to' if least else 'up to'} {most}" if most != least else f" of {most}"
    return f" of {least} or more" if least else ""


def example(info: FieldInfo) -> str:
    """An example of a field's value, in YAML."""
    if info.examples:
        return str(info.examples[0])
    notes = [note for note in info.metadata if isinstance(note, Allowed)]
    if notes and notes[0].example:
        return notes[0].example
    default: object = info.get_default(call_default_factory=False)
    if info.annotation is bool:
        return "false" if default else "true"
    if default not in (None, ()) and info.default_factory is None and not info.is_required():
        return in_yaml(default)
    return _example_of(info.annotation)


def _example_of(kind: object) -> str:
    if get_origin(kind) is Annotated:
        noted = next(
            (note.example for note in get_args(kind)[1:] if isinstance(note, Allowed) and note.example), ""
        )
        return noted or _example_of(get_args(kind)[0])
    arguments = [part for part in get_args(kind) if part not in (NoneType, Ellipsis)]
    if get_origin(kind) is tuple:
        return f"[{_example_of(arguments[0])}]"
    if get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        return f"{_members(kind)[0]}"
    if isinstance(kind, type) and issubclass(kind, Section):
        required = [info for info in kind.model_fields.values() if info.is_required()]
        shown = required or list(kind.model_fields.values())[:1]
        return f"{{{', '.join(f'{info.alias}: {example(info)}' for info in shown)}}}"
    return (
        _example_of(arguments[0])
        if arguments
        else {bool: "true", int: "1", float: "1.5"}.get(cast("type", kind), "…")
    )


def in_yaml(value: object) -> str:
    """A value as YAML has it on one line."""
    if isinstance(value, Section):
        value = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    plain = json.loads(json.dumps(value, default=str))
    text = yaml.dump(plain, default_flow_style=True, sort_keys=False, width=10_000)
    return text.removesuffix("\n...\n").strip()


@dataclass(frozen=True, kw_only=True)
class _Location:
    """The location of an error: the innermost section, the name of the field in it, and the path in the document."""

    section: type[Section]
    name: str
    place: Place

    @property
    def field(self) -> FieldInfo | None:
        return _field(self.section, self.name)


def shape_problems(model: type[Section], error: ValidationError, root: str) -> Iterator[Problem]:
    """The problems of a document that does not parse as a `model`; `root` is the document's path."""
    details = error.errors(include_url=False)
    meant = {
        (*found.place[:-1], name)
        for detail in details
        if detail["type"] == "extra_forbidden"
        for found in (_locate(model, detail["loc"]),)
        for name in found.section.field_names()
        if name in _instead_of(found)
    }
    for detail in details:
        if detail["type"] == "missing" and tuple(_locate(model, detail["loc"]).place) in meant:
            # It is there, under another name.
            continue
        if detail["type"] == "too_short" and _has_wrong_item(detail, details):
            # Pydantic counts only valid items: a list with one invalid item is not too short.
            continue
        if detail["type"] == "default_factory_not_called":
            # The default depends on a field that has a problem of its own.
            continue
        found = _locate(model, detail["loc"])
        if detail["type"] == "extra_forbidden":
            yield _unknown_field(found, detail, root)
        else:
            yield _wrong_value(found, detail, root)


def _has_wrong_item(wrong: ErrorDetails, others: Sequence[ErrorDetails]) -> bool:
    place = wrong["loc"]
    return any(other["loc"][: len(place)] == place and len(other["loc"]) > len(place) for other in others)


def _locate(model: type[Section], location: Place) -> _Location:
    """The location of an error: Pydantic's own, without the names of variants, which are not in the document."""
    section, name, place = model, "", list[str | int]()
    variant: type[Section] | None = None
    for step in location:
        if isinstance(step, str):
            inner = list(sections_in(info.annotation)) if (info := _field(section, name)) else []
            chosen = next((found for found in inner if found.__name__ == step), None)
            if chosen is not None:
                variant = chosen
                continue
            section, name = variant or next(iter(inner), section), step
            variant = None
        place.append(step)
    return _Location(section=section, name=name, place=place)


def _field(section: type[Section], name: str) -> FieldInfo | None:
    return next((info for info in section.model_fields.values() if info.alias == name), None)


def sections_in(annotation: object) -> Iterator[type[Section]]:
    """The sections in a field's type: the type itself, in a list, as variants, or optional."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for part in get_args(annotation):
        yield from sections_in(part)


def _unknown_field(found: _Location, detail: ErrorDetails, root: str) -> Problem:
    names = found.section.field_names()
    return Problem(
        field=path(root, found.place),
        value=f"an unknown field (with {format_value(detail['input'])})",
        allowed=", ".join(names) or "nothing",
        fix=_instead_of(found),
    )


def _instead_of(found: _Location) -> str:
    """The fix of an unknown field."""
    close = close_name(found.name, found.section.field_names())
    return found.section.fixes.get(found.name) or (f'Write "{close}".' if close else found.section.otherwise)


#: Names of fewer letters end other words by chance.
_SHORTEST_ENDING: Final = 4


def close_name(name: str, known: Collection[str]) -> str | None:
    """The known field that a name means: misspelled, in another case, or with a word more or less before it."""
    by_lower_case = {one.lower(): one for one in known}
    meant = (to_camel(name) if "_" in name else name).lower()
    close = get_close_matches(meant, by_lower_case, n=1, cutoff=0.75)
    endings = [one for one in by_lower_case if len(one) >= _SHORTEST_ENDING and meant.endswith(one)]
    longer = [one for one in by_lower_case if len(meant) >= _SHORTEST_ENDING and one.endswith(meant)]
    found = close or sorted(endings, key=len, reverse=True) or (longer if len(longer) == 1 else [])
    return by_lower_case[found[0]] if found else None


def _wrong_value(found: _Location, detail: ErrorDetails, root: str) -> Problem:
    info, missing = found.field, detail["type"] == "missing"
    return Problem(
        field=path(root, found.place),
        value="nothing" if missing else format_value(detail["input"]),
        allowed=allowed(info.annotation, info.metadata) if info else allowed(found.section),
        fix=_fix(info, found.name, detail) if info else "Write a mapping.",
    )


def _fix(info: FieldInfo, name: str, detail: ErrorDetails) -> str:
    kind, value = detail["type"], cast("object", detail["input"])
    if kind == WITH_FIX:
        return str(detail.get("ctx", {})["fix"])
    written = f"`{name}: {example(info)}`"
    beside = " beside holdfast:platform" if ":" in name else ""
    if kind == "missing":
        return f"Add {written}{beside}."
    if kind == "string_type" and isinstance(value, int | float) and not isinstance(value, bool):
        return f'Put it in quotes: "{value}".'
    listed = cast("list[object]", value) if isinstance(value, list) else []
    if kind == "string_type" and len(listed) == 1:
        return f"Write {format_value(listed[0])}, without the brackets."
    close = _close_member(info.annotation, cast("object", value))
    return f'Write "{close}".' if close else f"Write, for example, {written}{beside}."


def _close_member(annotation: object, value: object) -> str | None:
    """The member of an enumeration closest to the value."""
    kinds = [
        part
        for part in (annotation, *get_args(annotation))
        if isinstance(part, type) and issubclass(part, Enum)
    ]
    if not kinds or not isinstance(value, str):
        return None
    members = [str(member.value) for member in kinds[0]]
    text = value.lower().replace("_", "-").replace("ondemand", "on-demand")
    return next(iter(get_close_matches(text, members, n=1)), None)


def setting_fix(field: str, meant: str, known: Mapping[str, object] | Collection[str], otherwise: str) -> str:
    """The fix of a wrong region or location: the closest known one."""
    close = get_close_matches(meant, known, n=1)
    return (
        f'Write "{close[0]}".'
        if close
        else f"Write, for example, `{field}: {otherwise}` beside holdfast:platform."
    )
