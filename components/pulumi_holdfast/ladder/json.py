"""The types of JSON documents, how to read one whose fields may be missing, and UNKNOWN.

UNKNOWN is the value of an output that a preview does not know yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias, cast

JsonValue: TypeAlias = bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None
Json: TypeAlias = Mapping[str, JsonValue]


class Unknown(Enum):
    """The type of `UNKNOWN`: an enumeration with one member, so that type checkers narrow it with `is`."""

    UNKNOWN = "unknown until the update"


UNKNOWN: Final = Unknown.UNKNOWN


def all_true(found: Iterable[bool | Unknown]) -> bool | Unknown:
    """Whether all are true: False if any certainly is not, UNKNOWN if any may not be."""
    values = {*found}
    return False if False in values else UNKNOWN if UNKNOWN in values else True


def mapping(value: JsonValue) -> Json:
    """Return `value` if it is an object, otherwise an empty one: missing and null are the same."""
    # A reconciliation calls this some hundred times; the checks for dict and None are several times as fast as for Mapping.
    if isinstance(value, dict):
        return value
    return value if value is not None and isinstance(value, Mapping) else {}


def sequence(value: JsonValue) -> Sequence[JsonValue]:
    """Return `value` if it is an array, otherwise an empty one: missing and null are the same."""
    if isinstance(value, list):
        return value
    if value is None or isinstance(value, str) or not isinstance(value, Sequence):
        return ()
    return cast("Sequence[JsonValue]", value)
