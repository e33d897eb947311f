"""Types of single values: a name, a duration, where charts come from."""

import re
from datetime import timedelta
from typing import Annotated, Final

from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator
from pydantic_core import PydanticCustomError

from holdfast.infra import naming
from holdfast.scheduling.quantities import DurationError, format_duration, parse_duration

#: The error type of refusals that bring their own fix.
MENDED: Final = "mended"


def refusal(fix: str) -> PydanticCustomError:
    """A refusal whose text is the field's description and this fix."""
    return PydanticCustomError(MENDED, "{fix}", {"fix": fix})


def _dns_label(text: str) -> str:
    if not naming.is_dns_label(text):
        suggestion = naming.as_dns_label(text)
        raise refusal(f'Write "{suggestion}".' if suggestion else "Write a name such as a100-spot.")
    return text


def _duration(value: object) -> timedelta:
    # An unquoted 15 arrives as a number; to the user it is the same slip as "15".
    text = value if isinstance(value, str) else str(value)
    try:
        return parse_duration(text)
    except DurationError as error:
        raise refusal(error.fix) from None


def _chart_source(text: str) -> str:
    if re.match(r"http://", text, re.IGNORECASE):
        raise refusal(f'Write "https://{text[7:]}": charts run with rights over the cluster.')
    if "://" in text and not text.startswith(("oci://", "https://")):
        raise refusal("Write a directory, or an address that starts with oci:// or https://.")
    return text


DnsLabel = Annotated[str, AfterValidator(_dns_label)]
Duration = Annotated[
    timedelta,
    PlainValidator(_duration),
    PlainSerializer(format_duration, return_type=str),
]
ChartSource = Annotated[str, Field(min_length=1), AfterValidator(_chart_source)]
FilePath = Annotated[str, Field(min_length=1)]

NAME_ALLOWED: Final = (
    f"1 to {naming.DNS_LABEL_LIMIT} lower-case letters, digits and hyphens, first and last no hyphen"
)
