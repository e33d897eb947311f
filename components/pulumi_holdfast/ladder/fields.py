"""Rows of a table of fields: from one row come its OpenAPI schema, its validation, its reading and its line in the documentation.

A `Kind` is the type of a field with its bounds; `a_list` and `an_object` are made of others. The API server has validated each
object by the definition of its own version: `Kind.problems` finds what another version, or a document that no API server has
seen, has instead. Unknown fields belong to a newer definition, and are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Final, cast

from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.quantities import (
    DURATION_ALLOWED,
    DURATION_PATTERN,
    LONGEST_DURATION,
    format_duration,
    parse_duration,
)
from pulumi_holdfast.ladder.windows import TIME_ALLOWED, TIME_PATTERN, format_time, parse_time

#: A duration of nothing: `never`.
NEVER: Final = timedelta(0)
# Longer values are cut when a problem quotes them.
_QUOTED: Final = 60


class NotAllowedError(ValueError):
    """A value that a field may not have."""


def rule(cel: str, message: str) -> Json:
    """Return a rule of the API server: what must hold, and what is wrong otherwise with the fix."""
    return {"rule": cel, "message": message}


def _same(value: object) -> object:
    return value


def _plain(value: object) -> JsonValue:
    return str(value) if isinstance(value, StrEnum) else cast("JsonValue", value)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """The type of a field: its schema, and what it may be in words.

    `read` returns the value as the controller uses it; a ValueError, whose `fix` may say more, is a problem. `write` returns it
    as a document has it.
    """

    schema: Json
    allowed: str
    read: Callable[[JsonValue], object] = _same
    write: Callable[[object], JsonValue] = _plain

    def problems(self, value: JsonValue, at: str) -> Iterator[Problem]:
        """Validate a value; `at` is its path."""
        try:
            self.read(value)
        except ValueError as error:
            quoted = f'"{value}"' if isinstance(value, str) else str(value)
            yield Problem(
                field=at,
                value=quoted if len(quoted) <= _QUOTED else f"{quoted[:_QUOTED]}…",
                allowed=self.allowed,
                fix=getattr(error, "fix", "Set an allowed value, or remove the field."),
            )


@dataclass(frozen=True)
class Field:
    """One field: its name, its kind and what it means. The controller does not read one that is not `is_read`."""

    name: str
    kind: Kind
    meaning: str = ""
    is_required: bool = False
    is_read: bool = True

    @property
    def attribute(self) -> str:
        """The name of the attribute in the class that the object is read as."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()

    @property
    def schema(self) -> Json:
        """Its OpenAPI schema."""
        return {**self.kind.schema, **({"description": self.meaning} if self.meaning else {})}


@dataclass(frozen=True, kw_only=True)
class ListKind(Kind):
    """A list of one kind of items."""

    items: Kind

    def problems(self, value: JsonValue, at: str) -> Iterator[Problem]:
        """Validate the items; `at` is the path of the list."""
        if isinstance(value, str) or not isinstance(value, Sequence):
            yield from super().problems(value, at)
            return
        for place, item in enumerate(value):
            yield from self.items.problems(item, f"{at}[{place}]")


@dataclass(frozen=True, kw_only=True)
class ObjectKind(Kind):
    """An object with these fields, or with any keys and `values` of one kind."""

    fields: tuple[Field, ...] = ()
    values: Kind | None = None

    def problems(self, value: JsonValue, at: str) -> Iterator[Problem]:
        """Validate the fields that the controller reads; `at` is the path of the object."""
        if not isinstance(value, Mapping):
            yield from super().problems(value, at)
            return
        for each in self.fields:
            found = value.get(each.name)
            if each.is_required and found in (None, (), []):
                yield Problem(
                    field=f"{at}.{each.name}",
                    value=f"no {each.name}",
                    allowed=each.kind.allowed,
                    fix=f"Set {each.name}.",
                )
            elif each.is_read and found is not None:
                yield from each.kind.problems(found, f"{at}.{each.name}")
        if self.values is not None:
            for key, found in value.items():
                yield from self.values.problems(found, f"{at}.{key}")


def a_list(
    items: Kind,
    most: int,
    *,
    least: int | None = None,
    kind: str = "atomic",
    key: str | None = None,
    rules: Sequence[Json] = (),
) -> ListKind:
    """Return the kind of a bounded list, which is read as a tuple; `key` identifies the items of a `map`."""
    schema: Json = {
        "type": "array",
        **({} if least is None else {"minItems": least}),
        "maxItems": most,
        "items": items.schema,
        "x-kubernetes-list-type": kind,
        **({} if key is None else {"x-kubernetes-list-map-keys": [key]}),
        **({"x-kubernetes-validations": list(rules)} if rules else {}),
    }
    return ListKind(schema=schema, allowed="a list", items=items, read=partial(_read_list, items))


def _read_list(items: Kind, value: JsonValue) -> object:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise NotAllowedError
    return tuple(items.read(each) for each in value)


def an_object(*fields: Field, rules: Sequence[Json] = (), made: Callable[..., object] = dict) -> ObjectKind:
    """Return the kind of an object; `made` gets the fields that are there as keyword arguments."""
    required = [each.name for each in fields if each.is_required]
    schema: Json = {
        "type": "object",
        **({"required": required} if required else {}),
        "properties": {each.name: each.schema for each in fields},
        **({"x-kubernetes-validations": list(rules)} if rules else {}),
    }
    return ObjectKind(
        schema=schema, allowed="an object", fields=fields, read=partial(_read_object, fields, made)
    )


def _read_object(fields: tuple[Field, ...], made: Callable[..., object], value: JsonValue) -> object:
    if not isinstance(value, Mapping):
        raise NotAllowedError
    present = ((each, value.get(each.name)) for each in fields if each.is_read)
    return made(**{each.attribute: each.kind.read(found) for each, found in present if found is not None})


def a_map(values: Kind, most: int) -> ObjectKind:
    """Return the kind of an object with any keys, which is read as pairs."""
    schema: Json = {"type": "object", "maxProperties": most, "additionalProperties": values.schema}
    return ObjectKind(schema=schema, allowed="an object", values=values, read=_pairs)


def _pairs(value: JsonValue) -> object:
    if not isinstance(value, Mapping):
        raise NotAllowedError
    return tuple((key, str(each)) for key, each in value.items())


def written(fields: Iterable[Field], source: object) -> dict[str, JsonValue]:
    """Return the fields of an object that are set, as a document has them."""
    found = ((each, getattr(source, each.attribute)) for each in fields)
    return {each.name: each.kind.write(value) for each, value in found if value not in (None, "")}


def a_number(least: int, most: int | None) -> Kind:
    """Return the kind of an integer within limits."""
    schema: Json = {"type": "integer", "format": "int32", "minimum": least}
    return Kind(
        schema=schema if most is None else {**schema, "maximum": most},
        allowed=f"an integer from {least}" if most is None else f"an integer from {least} to {most}",
        read=partial(_read_number, least, most),
    )


def _read_number(least: int, most: int | None, value: JsonValue) -> object:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise NotAllowedError
    if most is not None and value > most:
        raise NotAllowedError
    return value


def a_price(most: int) -> Kind:
    """Return the kind of a price above 0."""
    return Kind(
        schema={
            "type": "number",
            "format": "double",
            "minimum": 0,
            "exclusiveMinimum": True,
            "maximum": most,
        },
        allowed=f"a number above 0, up to {most}",
        read=partial(_read_price, most),
    )


def _read_price(most: int, value: JsonValue) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise NotAllowedError
    return float(value)


def a_choice(choices: type[StrEnum] | Sequence[str]) -> Kind:
    """Return the kind of one of these values."""
    values = [str(each) for each in choices]
    make = choices if isinstance(choices, type) else str
    return Kind(
        schema={"type": "string", "enum": values},
        allowed=" or ".join(values),
        read=partial(_read_choice, values, make),
    )


def _read_choice(values: Sequence[str], make: Callable[[str], object], value: JsonValue) -> object:
    if not isinstance(value, str) or value not in values:
        raise NotAllowedError
    return make(value)


FLAG: Final = Kind(schema={"type": "boolean"}, allowed="true or false")


def a_text(
    longest: int,
    *,
    least: int = 0,
    pattern: str = "",
    allowed: str = "a string",
    read: Callable[[str], object] = str,
) -> Kind:
    """Return the kind of a string with a length and a pattern."""
    schema: Json = {
        "type": "string",
        **({"minLength": least} if least else {}),
        "maxLength": longest,
        **({"pattern": pattern} if pattern else {}),
    }
    return Kind(schema=schema, allowed=allowed, read=partial(_read_text, longest, pattern, read))


def _read_text(longest: int, pattern: str, read: Callable[[str], object], value: JsonValue) -> object:
    if not isinstance(value, str) or len(value) > longest:
        raise NotAllowedError
    if pattern and re.fullmatch(pattern, value, re.ASCII) is None:
        raise NotAllowedError
    return read(value)


_LONGEST_DURATION_TEXT: Final = len("999999h999999m999999s")


def a_duration(*, or_never: bool = False, rules: Sequence[Json] = ()) -> Kind:
    """Return the kind of a duration, which may also be `never`, or has `rules` of its own.

    The pattern alone would allow `0m` and the empty string.
    """
    longest = format_duration(LONGEST_DURATION)
    bounds = f"self != '' && duration(self) >= duration('1s') && duration(self) <= duration('{longest}')"
    message = f"must be a duration with units from 1s to {longest}, such as 45s, 15m or 1h30m"
    never = rule(f"self == 'never' || ({bounds})", f"{message}, or never")
    return Kind(
        schema={
            "type": "string",
            "maxLength": _LONGEST_DURATION_TEXT,
            "pattern": f"^never$|{DURATION_PATTERN}" if or_never else DURATION_PATTERN,
            "x-kubernetes-validations": [never if or_never else rule(bounds, message), *rules],
        },
        allowed=f"{DURATION_ALLOWED}; or never" if or_never else DURATION_ALLOWED,
        read=partial(_read_duration, or_never=or_never),
        write=_write_duration,
    )


def _read_duration(value: JsonValue, *, or_never: bool) -> object:
    if not isinstance(value, str) or len(value) > _LONGEST_DURATION_TEXT:
        raise NotAllowedError
    return NEVER if or_never and value == "never" else parse_duration(value)


def _write_duration(value: object) -> JsonValue:
    return "never" if value == NEVER else format_duration(cast("timedelta", value))


def _read_time(text: str) -> datetime:
    if (time := parse_time(text)) is None:
        raise NotAllowedError
    return time


def _write_time(value: object) -> JsonValue:
    return format_time(value) if isinstance(value, datetime) else _plain(value)


TIME: Final = replace(
    a_text(len("2026-12-01T11:30:00Z"), pattern=TIME_PATTERN, allowed=TIME_ALLOWED, read=_read_time),
    write=_write_time,
)

LONGEST_NAME: Final = 63
#: A prefix of 253 characters, a slash and a name.
_LONGEST_KEY: Final = 253 + 1 + LONGEST_NAME

NAME: Final = a_text(
    LONGEST_NAME,
    least=1,
    pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    allowed="a name of lower-case letters, digits and hyphens",
)
LABEL_KEY: Final = a_text(_LONGEST_KEY, least=1)
LABEL_VALUE: Final = a_text(LONGEST_NAME)

#: A number of CPUs or bytes.
QUANTITY_PATTERN: Final = r"^[0-9]+(m|[KMGT]i?)?$"
LONGEST_AMOUNT: Final = 20
