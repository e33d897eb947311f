"""Turns the parser's complaints into refusals that name field, value, what is allowed and the mend."""

import json
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from enum import Enum
from typing import TYPE_CHECKING, Final, get_args

from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from infra.config.fields import MENDED
from infra.config.section import Section
from scheduling.errors import Problem

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Place = Sequence[str | int]

_LONGEST_VALUE: Final = 80


def path(root: str, place: Place) -> str:
    """`holdfast:platform`, `("pools", 2, "capacity")` → `holdfast:platform.pools[2].capacity`."""
    return root + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)


def shown(value: object) -> str:
    """A value as the user would recognise it, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def shape_problems(model: type[Section], error: ValidationError, root: str) -> Iterator[Problem]:
    """Every complaint of the parser about a document that should be a `model`; `root` is the document's path."""
    for detail in error.errors(include_url=False):
        section, place = _section_of(model, detail["loc"])
        if detail["type"] == "extra_forbidden":
            yield _unknown_field(section, detail, root)
        else:
            yield _wrong_value(section, place, detail, root)


def _section_of(model: type[Section], place: Place) -> tuple[type[Section], str]:
    """The innermost section on the way to a place, and the name of the field that is wrong in it."""
    section, last = model, ""
    for step in place:
        if isinstance(step, str):
            inner = _inner_section(section, last) if last else section
            section, last = inner or section, step
    return section, last


def _field(section: type[Section], name: str) -> FieldInfo | None:
    return next((info for key, info in section.model_fields.items() if to_camel(key) == name), None)


def _inner_section(section: type[Section], name: str) -> type[Section] | None:
    """The section that a field holds: itself, in a list, or beside None."""
    info = _field(section, name)
    candidates = [info.annotation, *get_args(info.annotation)] if info else []
    return next(
        (found for found in candidates if isinstance(found, type) and issubclass(found, Section)), None
    )


def _unknown_field(section: type[Section], detail: "ErrorDetails", root: str) -> Problem:
    name = str(detail["loc"][-1])
    names = section.field_names()
    close = get_close_matches(name, names, n=1)
    mend = section.mends.get(name) or (f'Write "{close[0]}".' if close else "Remove it.")
    return Problem(
        field=path(root, detail["loc"]),
        value=f"an unknown field (with {shown(detail['input'])})",
        allowed=", ".join(names),
        mend=mend,
    )


def _wrong_value(section: type[Section], name: str, detail: "ErrorDetails", root: str) -> Problem:
    info = _field(section, name)
    missing = detail["type"] == "missing"
    return Problem(
        field=path(root, detail["loc"]),
        value="nothing" if missing else shown(detail["input"]),
        allowed=(info.description if info else None) or f"a mapping of {', '.join(section.field_names())}",
        mend=_mend(info, name, detail) if info else "Write a mapping.",
    )


def _mend(info: FieldInfo, name: str, detail: "ErrorDetails") -> str:
    kind, value = detail["type"], detail["input"]
    example = str((info.examples or ["…"])[0])
    if kind == MENDED:
        return str(detail.get("ctx", {})["mend"])
    if kind == "missing":
        return f"Add `{name}: {example}`."
    if kind == "string_type" and isinstance(value, int | float) and not isinstance(value, bool):
        return f'Put it in quotes: "{value}".'
    close = _close_member(info, value)
    return f'Write "{close}".' if close else f"Write, for example, `{name}: {example}`."


def _close_member(info: FieldInfo, value: object) -> str | None:
    """The member of an enumeration that the user most likely meant."""
    kind = info.annotation
    if not (isinstance(kind, type) and issubclass(kind, Enum) and isinstance(value, str)):
        return None
    members = [str(member.value) for member in kind]
    spelled = value.lower().replace("_", "-").replace("ondemand", "on-demand")
    return next(iter(get_close_matches(spelled, members, n=1)), None)
