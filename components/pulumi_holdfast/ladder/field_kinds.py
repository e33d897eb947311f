"""Kinds of fields of a Kubernetes object: their OpenAPI schemas, and the validation of values by them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.ladder import HIGHEST_PRICE
from pulumi_holdfast.ladder.quantities import (
    DURATION_ALLOWED,
    DURATION_PATTERN,
    LONGEST_DURATION,
    DurationError,
    format_duration,
    parse_duration,
)
from pulumi_holdfast.ladder.windows import TIME_ALLOWED, TIME_PATTERN, parse_time


def integer(least: int, most: int | None, description: str = "") -> Json:
    """Return the schema of an integer within limits."""
    return {
        "type": "integer",
        "format": "int32",
        "minimum": least,
        **({} if most is None else {"maximum": most}),
        **({"description": description} if description else {}),
    }


def listed(items: Json, most: int, description: str, kind: str = "atomic") -> Json:
    """Return the schema of a list."""
    return {
        "type": "array",
        "maxItems": most,
        "items": items,
        "x-kubernetes-list-type": kind,
        "description": description,
    }


def rule(cel: str, message: str) -> Json:
    """Return a rule: what must hold, and what is wrong otherwise with the fix."""
    return {"rule": cel, "message": message}


_MAX_DURATION_LENGTH: Final = len("999999h999999m999999s")


def duration(description: str) -> Json:
    """Return the schema of a duration."""
    return {
        "type": "string",
        "description": description,
        "maxLength": _MAX_DURATION_LENGTH,
        "pattern": DURATION_PATTERN,
        "x-kubernetes-validations": [duration_rule()],
    }


def duration_or_never(description: str) -> Json:
    """Return the schema of a duration that may also be `never`."""
    bounds = duration_rule()
    never = rule(f"self == 'never' || ({bounds['rule']})", f"{bounds['message']}, or never")
    return {
        **duration(description),
        "pattern": f"^never$|{DURATION_PATTERN}",
        "x-kubernetes-validations": [never],
    }


def duration_rule() -> Json:
    """Return the rule that bounds a duration. The pattern alone would allow `0m` and the empty string."""
    longest = format_duration(LONGEST_DURATION)
    return rule(
        f"self != '' && duration(self) >= duration('1s') && duration(self) <= duration('{longest}')",
        f"must be a duration with units from 1s to {longest}, such as 45s, 15m or 1h30m",
    )


#: A number of CPUs or bytes.
QUANTITY_PATTERN: Final = r"^[0-9]+(m|[KMGT]i?)?$"
NAME_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LONGEST_NAME: Final = 63
LONGEST_AMOUNT: Final = 20
#: A prefix of 253 characters, a slash and a name.
_LONGEST_KEY: Final = 253 + 1 + LONGEST_NAME

DNS_LABEL: Final[Json] = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_NAME,
    "pattern": NAME_PATTERN,
}

LABEL_KEY: Final[Json] = {"type": "string", "minLength": 1, "maxLength": _LONGEST_KEY}

LABEL_VALUE: Final[Json] = {"type": "string", "maxLength": LONGEST_NAME}


def text(longest: int, description: str) -> Json:
    """Return the schema of a string for readers."""
    return {"type": "string", "maxLength": longest, "description": description}


def amount(pattern: str, description: str) -> Json:
    """Return the schema of a quantity with the same pattern as in the configuration."""
    return {"type": "string", "maxLength": LONGEST_AMOUNT, "pattern": pattern, "description": description}


def price(description: str) -> Json:
    """Return the schema of a price."""
    return {
        "type": "number",
        "format": "double",
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": HIGHEST_PRICE,
        "description": description,
    }


def time(description: str) -> Json:
    """Return the schema of a time."""
    return {
        "type": "string",
        "maxLength": len("2026-12-01T11:30:00Z"),
        "pattern": TIME_PATTERN,
        "description": description,
    }


#: What a field may be, in words, by the pattern of its schema.
_IN_WORDS: Final[Mapping[JsonValue, str]] = {
    DURATION_PATTERN: DURATION_ALLOWED,
    f"^never$|{DURATION_PATTERN}": f"{DURATION_ALLOWED}; or never",
    TIME_PATTERN: TIME_ALLOWED,
    NAME_PATTERN: "a name of lower-case letters, digits and hyphens",
    QUANTITY_PATTERN: "a quantity such as 96 or 1152Gi",
}
#: Fields that admission, the policies and the command line read, and the controller does not.
_UNREAD: Final = frozenset({"shapes", "exported", "machines", "labelValues"})
# Longer values are cut when a problem quotes them.
_QUOTED: Final = 60


def field_problems(value: JsonValue, schema: Json, at: str) -> Iterator[Problem]:
    """Validate the fields that the controller reads; `at` is the path of the value.

    The API server has validated each object, by the definition of its own version: this finds what another version, or
    a document that no API server has seen, has instead. Unknown fields belong to a newer definition, and are ignored.
    """
    match schema["type"]:
        case "object" if isinstance(value, Mapping):
            yield from _object_problems(value, schema, at)
        case "array" if isinstance(value, Sequence) and not isinstance(value, str):
            for place, item in enumerate(value):
                yield from field_problems(item, mapping(schema["items"]), f"{at}[{place}]")
        case _ if not _is_allowed(value, schema):
            yield _problem(value, schema, at)
        case _:
            pass


def _object_problems(value: Json, schema: Json, at: str) -> Iterator[Problem]:
    properties = mapping(schema.get("properties"))
    for name in map(str, sequence(schema.get("required"))):
        if value.get(name) in (None, (), []):
            yield Problem(
                field=f"{at}.{name}",
                value=f"no {name}",
                allowed=_allowed(mapping(properties[name])),
                fix=f"Set {name}.",
            )
    for name, schema_of_field in properties.items():
        if name not in _UNREAD and value.get(name) is not None:
            yield from field_problems(value[name], mapping(schema_of_field), f"{at}.{name}")
    values = mapping(schema.get("additionalProperties"))
    for key, each in value.items() if values else ():
        yield from field_problems(each, values, f"{at}.{key}")


def _is_allowed(value: JsonValue, schema: Json) -> bool:
    if schema["type"] in {"integer", "number"}:
        least, most = schema.get("minimum"), schema.get("maximum")
        return (
            isinstance(value, int if schema["type"] == "integer" else int | float)
            and not isinstance(value, bool)
            and isinstance(least, int)
            and isinstance(most, int)
            and least <= value <= most
            and not (value == least and schema.get("exclusiveMinimum"))
        )
    if schema["type"] != "string" or not isinstance(value, str):
        return False
    longest, pattern = schema.get("maxLength"), str(schema.get("pattern", ""))
    if isinstance(longest, int) and len(value) > longest:
        return False
    if "enum" in schema:
        return value in sequence(schema["enum"])
    if pattern == TIME_PATTERN:
        return parse_time(value) is not None
    if pattern.endswith(DURATION_PATTERN) and value != "never":
        return _duration_fix(value) is None
    return not pattern or re.fullmatch(pattern, value, re.ASCII) is not None


def _duration_fix(text: str) -> str | None:
    try:
        parse_duration(text)
    except DurationError as error:
        return error.fix
    return None


def _allowed(schema: Json) -> str:
    if "enum" in schema:
        return " or ".join(map(str, sequence(schema["enum"])))
    if schema["type"] == "integer":
        return f"an integer from {schema['minimum']} to {schema['maximum']}"
    if schema["type"] == "number":
        return f"a number above {schema['minimum']}, up to {schema['maximum']}"
    words = {"object": "an object", "array": "a list", "string": "a string"}
    return _IN_WORDS.get(schema.get("pattern"), words[str(schema["type"])])


def _problem(value: JsonValue, schema: Json, at: str) -> Problem:
    quoted = f'"{value}"' if isinstance(value, str) else str(value)
    is_duration = str(schema.get("pattern", "")).endswith(DURATION_PATTERN)
    fix = _duration_fix(value) if is_duration and isinstance(value, str) else None
    return Problem(
        field=at,
        value=quoted if len(quoted) <= _QUOTED else f"{quoted[:_QUOTED]}…",
        allowed=_allowed(schema),
        fix=fix or "Set an allowed value, or remove the field.",
    )
