"""The base class of every section, and the types of single values on every cloud: names, durations, addresses, dates.

A type says what it allows in one place (`Allowed`): problems, the tables of the documentation and editors quote it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from ipaddress import AddressValueError, IPv4Network, NetmaskValueError
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, TypeAlias, cast, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pulumi_holdfast.config import naming, versions
from pulumi_holdfast.ladder.ladder import NEVER, is_dns_label
from pulumi_holdfast.ladder.quantities import DURATION_ALLOWED, DurationError, format_duration, parse_duration

if TYPE_CHECKING:
    from pulumi import Input, Output

    #: A text, or in a program an Output of another resource.
    TextOrOutput: TypeAlias = Input[str]
    #: A list of texts, or in a program Outputs.
    TextsOrOutput: TypeAlias = Input[Sequence[Input[str]]]
else:
    # What Pydantic parses: `OrOutput` puts the Output where its placeholder was.
    TextOrOutput = str
    TextsOrOutput = tuple[str, ...]


class Section(BaseModel):
    """A mapping of the configuration with a fixed set of fields.

    A field's description is its text in the documentation and in editors. What is allowed follows from its type; its first
    example shows how to write it where the type and the default do not.
    """

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)

    #: Fields that users try here, each with the sentence that says what to write instead.
    fixes: ClassVar[Mapping[str, str]] = MappingProxyType({})
    #: What to do with any other unknown field.
    otherwise: ClassVar[str] = "Remove it."

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The names of the fields in the document; the keys of a provider are beside it."""
        names = (info.alias or name for name, info in cls.model_fields.items())
        return tuple(name for name in names if ":" not in name)


@dataclass(frozen=True)
class Variant:
    """Chooses one of a union's sections by the unparsed value: `named` if it has one of these fields, otherwise `other`."""

    fields: Sequence[str]
    named: type[Section]
    other: type[Section]

    def _tag(self, value: object) -> str:
        # A default is an instance of the section, not a mapping.
        if isinstance(value, Section):
            return type(value).__name__
        has = isinstance(value, Mapping) and any(field in value for field in self.fields)
        return (self.named if has else self.other).__name__

    def __get_pydantic_core_schema__(self, union: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The union with each section tagged by its name."""
        sections = {part.__name__: handler.generate_schema(part) for part in get_args(union)}
        return core_schema.tagged_union_schema(sections, self._tag)


@dataclass(frozen=True)
class Allowed:
    """What a type allows, and an example in YAML."""

    text: str
    example: str = ""


@dataclass(frozen=True)
class Text(Allowed):
    """A text that is wholly of a pattern; `fix` says where to get one."""

    pattern: str = ""
    fix: str = ""
    flags: int = 0

    def __get_pydantic_core_schema__(self, source: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The text's schema with the check of the pattern."""
        compiled = re.compile(self.pattern, re.ASCII | self.flags)

        def check(text: str) -> str:
            if not compiled.fullmatch(text):
                raise error_with_fix(self.fix)
            return text

        return core_schema.no_info_after_validator_function(check, handler(source))


class Placeholders:
    """The Outputs of a document, by the texts that stand for them while Pydantic parses the document."""

    def __init__(self) -> None:
        self._outputs: dict[str, Output[object]] = {}
        self.unused = set[str]()

    def text_of(self, output: object) -> str:
        """The text that stands for an Output. Raises TypeError for any other value: it is none of a document."""
        if not hasattr(output, "apply"):
            raise TypeError(f"{output!r} is no value of a configuration")
        text = f"an Output ({len(self._outputs) + 1})"
        self._outputs[text] = cast("Output[object]", output)
        self.unused.add(text)
        return text

    def output_of(self, value: object) -> "Output[object] | None":
        """The Output behind a text, None for any other value."""
        found = self._outputs.get(value) if isinstance(value, str) else None
        if found is not None:
            self.unused.discard(cast("str", value))
        return found


@dataclass(frozen=True)
class OrOutput:
    """A field that also takes an Output, which no rule checks before an update knows its value."""

    def __get_pydantic_core_schema__(self, source: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of the known value, or the Output behind a placeholder."""

        def check(
            value: object, known: core_schema.ValidatorFunctionWrapHandler, info: ValidationInfo
        ) -> object:
            placeholders = cast("Placeholders | None", info.context)
            found = None if placeholders is None else placeholders.output_of(value)
            # Here a list from JSON is one of Python, which the strict parser does not accept for a tuple.
            listed = tuple(cast("list[object]", value)) if isinstance(value, list) else value
            return cast("object", known(listed)) if found is None else found

        return core_schema.with_info_wrap_validator_function(check, handler(source))


OR_OUTPUT: Final = OrOutput()


def known(value: object) -> str | None:
    """A text whose value is known; None for an Output and for None."""
    return value if isinstance(value, str) else None


def known_items(values: object) -> tuple[str, ...]:
    """The texts of a list whose values are known; none of an Output."""
    items = cast("tuple[object, ...]", values) if isinstance(values, tuple) else ()
    return tuple(text for each in items if (text := known(each)) is not None)


#: The error type of errors with their own fix.
WITH_FIX: Final = "with_fix"


def error_with_fix(fix: str) -> PydanticCustomError:
    """An error that the problem shows with this fix."""
    return PydanticCustomError(WITH_FIX, "{fix}", {"fix": fix})


def one_of_them(why: str) -> BeforeValidator:
    """A validator of a field with one value: it rejects a list of several; `why` says what to do with them."""

    def check(value: object) -> object:
        listed = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
        if len(listed) > 1:
            raise error_with_fix(f"Write one of them: {why}")
        return cast("object", value)

    return BeforeValidator(check)


def _dns_label(text: str) -> str:
    if not is_dns_label(text):
        suggestion = naming.as_dns_label(text)
        raise error_with_fix(f'Write "{suggestion}".' if suggestion else "Write a name such as a100-spot.")
    return text


def _duration(value: object) -> timedelta:
    # YAML parses an unquoted 15 as a number; the mistake is the same as "15".
    text = value if isinstance(value, str) else str(value)
    try:
        return parse_duration(text)
    except DurationError as error:
        raise error_with_fix(error.fix) from None


def _duration_or_never(value: object) -> timedelta:
    return NEVER if value in ("never", NEVER) else _duration(value)


def _chart_source(text: str) -> str:
    if re.match(r"http://", text, re.IGNORECASE):
        raise error_with_fix(f'Write "https://{text[7:]}": charts run with permissions in the cluster.')
    if not text or ("://" in text and not text.startswith(("oci://", "https://"))):
        raise error_with_fix("Write a directory, or an address that starts with oci:// or https://.")
    return text


_IMAGES: Final = re.compile(
    r"(?=[^/]*[.:])[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*", re.ASCII
)


def _image_source(text: str) -> str:
    bare = re.sub(r"^[a-z]+://", "", text).rstrip("/")
    if bare != text and _IMAGES.fullmatch(bare):
        raise error_with_fix(f'Write "{bare}".')
    if not _IMAGES.fullmatch(text):
        raise error_with_fix("Write the registry's host and, if needed, the path of its images.")
    return text


def _cidr(text: str) -> str:
    try:
        network = IPv4Network(text, strict=False)
    except (AddressValueError, NetmaskValueError):
        raise error_with_fix(
            "Write an IPv4 address and, behind a slash, the bits that are fixed of it."
        ) from None
    # A netmask, no prefix length, or host bits: clouds accept a single notation.
    if str(network) != text:
        raise error_with_fix(f'Write "{network}".')
    return text


#: Kubernetes 1.9 and earlier ran long ago: a shorter number lost its 0, since YAML reads 1.40 as 1.4.
_MINORS_OF_ONE_DIGIT: Final = 9


def _version(value: object) -> object:
    if isinstance(value, float):
        minor = str(value).partition(".")[2]
        lost = minor.isdecimal() and 0 < int(minor) <= _MINORS_OF_ONE_DIGIT
        raise error_with_fix(f'Put it in quotes: "{value}{"0" if lost else ""}".')
    return value


_MINUTES_IN_DAY: Final = 24 * 60


class Weekday(StrEnum):
    """Days of the week."""

    MONDAY = "monday"
    TUESDAY = "tuesday"
    WEDNESDAY = "wednesday"
    THURSDAY = "thursday"
    FRIDAY = "friday"
    SATURDAY = "saturday"
    SUNDAY = "sunday"

    @property
    def short(self) -> str:
        """The day as in RFC 5545."""
        return self.value[:2].upper()

    @property
    def number(self) -> int:
        """The number of days after Monday."""
        return list(Weekday).index(self)


def _time(value: object) -> object:
    # YAML 1.1 parses an unquoted 22:00 as a base 60 number.
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MINUTES_IN_DAY:
        hours, minutes = divmod(value, 60)
        raise error_with_fix(f'Put it in quotes: "{hours:02}:{minutes:02}".')
    if not isinstance(value, str) or not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", value, re.ASCII):
        raise error_with_fix('Write hours and minutes in two digits each, such as "02:00".')
    return value


def _day(value: object) -> str:
    # One YAML parser returns an unquoted date as a timestamp, another as a date.
    text = re.sub(r"T00:00:00(\.0+)?(Z|\+00:00)$", "", value) if isinstance(value, str) else ""
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text, re.ASCII):
            return date.fromisoformat(text).isoformat()
    except ValueError:
        raise error_with_fix("Write a date of the calendar.") from None
    raise error_with_fix(
        'Write a fixed date, such as "2026-12-01": a relative one would change with every update.'
    )


DnsLabel = Annotated[
    str,
    AfterValidator(_dns_label),
    Allowed(
        f"1 to {naming.DNS_LABEL_LIMIT} lower-case letters, digits and hyphens; no hyphen at the start or the end"
    ),
]
Duration = Annotated[
    timedelta,
    PlainValidator(_duration, json_schema_input_type=str),
    PlainSerializer(format_duration, return_type=str),
    Allowed(DURATION_ALLOWED, "20m"),
]
DurationOrNever = Annotated[
    timedelta,
    PlainValidator(_duration_or_never, json_schema_input_type=str),
    PlainSerializer(lambda time: "never" if time == NEVER else format_duration(time), return_type=str),
    Allowed(f"{DURATION_ALLOWED}; or never", "1h"),
]
KubernetesVersion = Annotated[
    str, BeforeValidator(_version), Allowed("a version of Kubernetes, in quotes", f'"{versions.KUBERNETES}"')
]
ChartSource = Annotated[
    str,
    AfterValidator(_chart_source),
    Allowed(
        "a directory, or an address that starts with oci:// or https://", "oci://registry.example.com/charts"
    ),
]
ImageSource = Annotated[
    str,
    AfterValidator(_image_source),
    Allowed("a registry's host and, after a slash, the path of its images", "registry.example.com/mirror"),
]
FilePath = Annotated[str, Field(min_length=1), Allowed("a path, relative to the project's directory")]
Cidr = Annotated[
    str, AfterValidator(_cidr), Allowed("a block of IPv4 addresses, such as 203.0.113.0/24", "203.0.113.0/24")
]
#: The start and the length of a window for maintenance.
WindowStart = Annotated[
    str, BeforeValidator(_time), Allowed("a time of day in UTC, in quotes, from 00:00 to 23:59", '"02:00"')
]
WindowHours = Annotated[int, Field(ge=4, le=24)]
Day = Annotated[
    str,
    PlainValidator(_day, json_schema_input_type=str),
    Allowed("a date as YYYY-MM-DD, in quotes", '"2026-12-20"'),
]
