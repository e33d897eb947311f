"""Property values of a resource, with those that a preview cannot know made explicit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypeGuard

from holdfast.scheduling.json import UNKNOWN, Unknown

__all__ = ["UNKNOWN", "Unknown", "Value", "at", "is_list", "is_object", "items_at", "text_at", "whole_number"]


Value: TypeAlias = "bool | int | float | str | Unknown | Sequence[Value] | Mapping[str, Value] | None"


def is_object(value: Value) -> TypeGuard[Mapping[str, Value]]:
    """Whether the value is a mapping of property names to values."""
    # What comes over the wire are dicts: asked for first, they take a tenth of the time.
    return isinstance(value, dict) or isinstance(value, Mapping)  # noqa: SIM101


def is_list(value: Value) -> TypeGuard[Sequence[Value]]:
    """Whether the value is a list; text is none."""
    return isinstance(value, list) or (isinstance(value, Sequence) and not isinstance(value, str))


def at(value: Value, *path: str) -> Value:
    """Return what lies at `path`: `UNKNOWN` as soon as a step is, `None` where there is nothing to step into."""
    for step in path:
        if value is UNKNOWN:
            return UNKNOWN
        if not is_object(value):
            return None
        value = value.get(step)
    return value


def items_at(value: Value, *path: str) -> Sequence[Value] | Unknown:
    """Return the list at `path`, or an empty one where there is none."""
    found = at(value, *path)
    if found is UNKNOWN:
        return UNKNOWN
    return found if is_list(found) else ()


def text_at(value: Value, *path: str) -> str | Unknown | None:
    """Return the text at `path`, or `None` where there is none."""
    found = at(value, *path)
    return found if found is UNKNOWN or isinstance(found, str) else None


def whole_number(value: Value) -> int | Literal[Unknown.UNKNOWN] | None:
    """Return the value as an integer; the engine's wire knows only floats, so `5.0` is 5."""
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if float(value).is_integer() else None
