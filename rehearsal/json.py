"""The types of JSON documents as they pass between the rehearsal's parts."""

from collections.abc import Mapping, Sequence  # noqa: TC003  (the aliases are resolved by name where they are used)
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
Json: TypeAlias = "Mapping[str, JsonValue]"
