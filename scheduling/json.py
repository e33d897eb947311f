"""The types of JSON documents, and UNKNOWN, the value of an output that a preview does not know yet."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
Json: TypeAlias = "Mapping[str, JsonValue]"


class Unknown(Enum):
    """The type of `UNKNOWN`: an enumeration with one member, so that type checkers narrow it with `is`."""

    UNKNOWN = "unknown until the update"


UNKNOWN: Final = Unknown.UNKNOWN
