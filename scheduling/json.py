"""The types of JSON documents: configuration as it is read, Kubernetes objects as they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final


class Unknown(Enum):
    """The type of `UNKNOWN`; an enumeration of one, so that `is` narrows it."""

    UNKNOWN = "unknown until the update"


UNKNOWN: Final = Unknown.UNKNOWN


JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
Json: TypeAlias = "Mapping[str, JsonValue]"
