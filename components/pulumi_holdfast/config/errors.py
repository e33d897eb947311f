"""Converts errors of Pydantic to problems with field, value, what is allowed, and the fix."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum, EnumType
from typing import Final, cast, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.fields import WITH_FIX
from pulumi_holdfast.ladder.errors import Problem

Place = Sequence[str | int]

_LONGEST_VALUE: Final = 80


def path(root: str, place: Place) -> str:
    """`holdfast:platform`, `("pools", 2, "capacity")` → `holdfast:platform.pools[2].capacity`."""
    return root + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)


def region_problem(
    field: str,
    region: str | None,
    known: Collection[str],
    *,
    what: str,
    allowed: str,
    example: str,
    meant: str,
) -> Problem | None:
    """The problem of the setting with a stack's region; None for a known one.

    `meant` is the region as the known ones are written, so that the fix names the closest of them.
    """
    if region in known:
        return None
    example = f"Write, for example, `{field}: {example}` beside holdfast:platform."
    if region is None:
        return Problem(
            field=field, value="nothing", allowed=f"the {what} of the stack", fix=f"Add it. {example}"
        )
    close = get_close_matches(meant, known, n=1)
    return Problem(
        field=field,
        value=format_value(region),
        allowed=allowed,
        fix=f'Write "{close[0]}".' if close else example,
    )


def format_value(value: object) -> str:
    """A value as JSON, shortened if it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


@dataclass(frozen=True, kw_only=True)
class _Location:
    """The location of an error: the innermost section, the name of the field in it, and the path in the document."""

    section: type[Section]
    name: str
    place: Place


def shape_problems(model: type[Section], error: ValidationError, root: str) -> Iterator[Problem]:
    """The problems of a document that does not parse as a `model`; `root` is the document's path."""
    details = error.errors(include_url=False)
    for detail in details:
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


def _has_wrong_item(wrong: "ErrorDetails", others: Sequence["ErrorDetails"]) -> bool:
    place = wrong["loc"]
    return any(other["loc"][: len(place)] == place and len(other["loc"]) > len(place) for other in others)


def _locate(model: type[Section], location: Place) -> _Location:
    """The location of an error: Pydantic's own, without the names of variants, which are not in the document."""
    section, name, place = model, "", list[str | int]()
    variant: type[Section] | None = None
    for step in location:
        if isinstance(step, str):
            inner = list(_sections_in(info.annotation)) if (info := _field(section, name)) else []
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


def _sections_in(annotation: object) -> Iterator[type[Section]]:
    """The sections in a field's type: the type itself, in a list, as variants, or optional."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for part in get_args(annotation):
        yield from _sections_in(part)


def _unknown_field(found: _Location, detail: "ErrorDetails", root: str) -> Problem:
    names = found.section.field_names()
    close = get_close_matches(found.name, names, n=1)
    fix = found.section.fixes.get(found.name) or (f'Write "{close[0]}".' if close else "Remove it.")
    return Problem(
        field=path(root, found.place),
        value=f"an unknown field (with {format_value(detail['input'])})",
        allowed=", ".join(names),
        fix=fix,
    )


def _wrong_value(found: _Location, detail: "ErrorDetails", root: str) -> Problem:
    info = _field(found.section, found.name)
    missing = detail["type"] == "missing"
    return Problem(
        field=path(root, found.place),
        value="nothing" if missing else format_value(detail["input"]),
        allowed=(info.description if info else None)
        or f"a mapping of {', '.join(found.section.field_names())}",
        fix=_fix(info, found.name, detail) if info else "Write a mapping.",
    )


def _fix(info: FieldInfo, name: str, detail: "ErrorDetails") -> str:
    kind, value = detail["type"], detail["input"]
    example = str((info.examples or ["…"])[0])
    if kind == WITH_FIX:
        return str(detail.get("ctx", {})["fix"])
    if kind == "missing":
        return f"Add `{name}: {example}`."
    if kind == "string_type" and isinstance(value, int | float) and not isinstance(value, bool):
        return f'Put it in quotes: "{value}".'
    close = _close_member(info, value)
    return f'Write "{close}".' if close else f"Write, for example, `{name}: {example}`."


def _close_member(info: FieldInfo, value: object) -> str | None:
    """The member of an enumeration closest to the value."""
    kinds = [part for part in (info.annotation, *get_args(info.annotation)) if isinstance(part, EnumType)]
    if not kinds or not isinstance(value, str):
        return None
    members = [str(cast("Enum", member).value) for member in kinds[0]]
    text = value.lower().replace("_", "-").replace("ondemand", "on-demand")
    return next(iter(get_close_matches(text, members, n=1)), None)
