"""Types of single values of time: a day of the week, a time of day, a date."""

import re
from datetime import date
from enum import StrEnum
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainValidator

from holdfast.infra.config.fields import refusal

TIME_ALLOWED: Final = "a time of day in UTC, in quotes, from 00:00 to 23:59"
DATE_ALLOWED: Final = "a day, year first, in quotes"

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
        """The day as RFC 5545 spells it."""
        return self.value[:2].upper()

    @property
    def number(self) -> int:
        """How many days it is after Monday."""
        return list(Weekday).index(self)


def _time(value: object) -> object:
    # YAML 1.1 reads an unquoted 22:00 as a number to the base of 60.
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MINUTES_IN_DAY:
        hours, minutes = divmod(value, 60)
        raise refusal(f'Put it in quotes: "{hours:02}:{minutes:02}".')
    if not isinstance(value, str) or not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", value, re.ASCII):
        raise refusal('Write hours and minutes in two digits each, such as "02:00".')
    return value


def _day(value: object) -> str:
    # An unquoted day arrives as an instant from one reader of YAML and as a day from another.
    text = re.sub(r"T00:00:00(\.0+)?(Z|\+00:00)$", "", value) if isinstance(value, str) else ""
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text, re.ASCII):
            return date.fromisoformat(text).isoformat()
    except ValueError:
        raise refusal("Write a day that the calendar has.") from None
    raise refusal(
        'Write a day that stays the same, such as "2026-12-01": one that moved would change at every update.'
    )


TimeOfDay = Annotated[str, BeforeValidator(_time)]
Day = Annotated[str, PlainValidator(_day)]
