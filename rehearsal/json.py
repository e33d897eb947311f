"""The types of JSON documents as they pass between the rehearsal's parts."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = "None | bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue]"
Json: TypeAlias = "Mapping[str, JsonValue]"
