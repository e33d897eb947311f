"""Types of single values on every cloud: names, durations, addresses, image registries, times and dates."""

import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from enum import StrEnum
from ipaddress import AddressValueError, IPv4Network, NetmaskValueError
from typing import Annotated, Final, cast

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, PlainValidator
from pydantic_core import PydanticCustomError

from pulumi_holdfast.config import naming, versions
from pulumi_holdfast.ladder.ladder import NEVER
from pulumi_holdfast.ladder.quantities import DurationError, format_duration, parse_duration

#: The error type of errors with their own fix.
WITH_FIX: Final = "with_fix"


def error_with_fix(fix: str) -> PydanticCustomError:
    """An error that the problem shows with this fix."""
    return PydanticCustomError(WITH_FIX, "{fix}", {"fix": fix})


def matching(pattern: str, fix: str, flags: int = 0) -> AfterValidator:
    """A validator of a text that is wholly of a pattern."""
    compiled = re.compile(pattern, re.ASCII | flags)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise error_with_fix(fix)
        return text

    return AfterValidator(check)


def not_a_list(fix: str) -> Callable[[object], object]:
    """A validator of a field with one value: it rejects a list; `fix` says what to do with a list of several."""

    def check(value: object) -> object:
        if not isinstance(value, list | tuple):
            return value
        listed = cast("Sequence[object]", value)
        if len(listed) == 1 and isinstance(listed[0], str):
            raise error_with_fix(f'Write "{listed[0]}", without the brackets.')
        raise error_with_fix(fix)

    return check


def _dns_label(text: str) -> str:
    if not naming.is_dns_label(text):
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
    if "://" in text and not text.startswith(("oci://", "https://")):
        raise error_with_fix("Write a directory, or an address that starts with oci:// or https://.")
    return text


KubernetesVersion = Annotated[
    str,
    Field(
        description=f'a Kubernetes version in quotes, "{versions.KUBERNETES}" or later',
        examples=[f'"{versions.KUBERNETES}"'],
    ),
]
DnsLabel = Annotated[str, AfterValidator(_dns_label)]
Duration = Annotated[
    timedelta,
    PlainValidator(_duration, json_schema_input_type=str),
    PlainSerializer(format_duration, return_type=str),
]
DurationOrNever = Annotated[
    timedelta,
    PlainValidator(_duration_or_never, json_schema_input_type=str),
    PlainSerializer(lambda time: "never" if time == NEVER else format_duration(time), return_type=str),
]
ChartSource = Annotated[str, Field(min_length=1), AfterValidator(_chart_source)]
FilePath = Annotated[str, Field(min_length=1)]

NAME_ALLOWED: Final = (
    f"1 to {naming.DNS_LABEL_LIMIT} lower-case letters, digits and hyphens; no hyphen at the start or the end"
)


CIDR_ALLOWED: Final = "a block of IPv4 addresses, such as 203.0.113.0/24"

_IMAGES: Final = re.compile(
    r"(?=[^/]*[.:])[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*", re.ASCII
)


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


def _image_source(text: str) -> str:
    bare = re.sub(r"^[a-z]+://", "", text).rstrip("/")
    if bare != text and _IMAGES.fullmatch(bare):
        raise error_with_fix(f'Write "{bare}".')
    if not _IMAGES.fullmatch(text):
        raise error_with_fix("Write the registry's host and, if needed, the path of its images.")
    return text


Cidr = Annotated[str, AfterValidator(_cidr)]
ImageSource = Annotated[str, Field(min_length=1), AfterValidator(_image_source)]


TIME_ALLOWED: Final = "a time of day in UTC, in quotes, from 00:00 to 23:59"
DATE_ALLOWED: Final = "a date as YYYY-MM-DD, in quotes"

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


TimeOfDay = Annotated[str, BeforeValidator(_time)]
#: The start and the length of a window for maintenance.
WindowStart = Annotated[TimeOfDay, Field(description=TIME_ALLOWED, examples=['"02:00"'])]
WindowHours = Annotated[
    int, Field(ge=4, le=24, description="a whole number of hours, 4 to 24", examples=["8"])
]
Day = Annotated[str, PlainValidator(_day, json_schema_input_type=str)]
