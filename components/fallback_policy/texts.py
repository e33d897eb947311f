"""Texts in the schema of a FallbackPolicy, each with the bound that the API holds it to elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

_LONGEST_NAME: Final = 63
#: A prefix of 253 characters, a slash, and a name.
_LONGEST_KEY: Final = 253 + 1 + _LONGEST_NAME

DNS_LABEL: Final[Json] = {
    "type": "string",
    "minLength": 1,
    "maxLength": _LONGEST_NAME,
    "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
}

LABEL_KEY: Final[Json] = {"type": "string", "minLength": 1, "maxLength": _LONGEST_KEY}

LABEL_VALUE: Final[Json] = {"type": "string", "maxLength": _LONGEST_NAME}


def text(longest: int, description: str) -> Json:
    """Return the schema of a text for people."""
    return {"type": "string", "maxLength": longest, "description": description}
