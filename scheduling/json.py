"""The types of JSON documents: configuration as it is read, Kubernetes objects as they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
Json: TypeAlias = "Mapping[str, JsonValue]"
