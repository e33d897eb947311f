"""When reserved capacity is available: windows of time, and times as users and manifests write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

#: The syntax of times, here and in the schema of the FallbackPolicy: RFC 3339, in UTC.
TIME_PATTERN: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
TIME_ALLOWED: Final = "a time in UTC as YYYY-MM-DDTHH:MM:SSZ, in quotes"

_TIME: Final = re.compile(TIME_PATTERN, re.ASCII)


def parse_time(text: str) -> datetime | None:
    """Parse a time; None for any other text."""
    if not _TIME.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def format_time(time: datetime) -> str:
    """Format a time as `parse_time` reads it, without fractions of a second."""
    return f"{time.astimezone(UTC).replace(microsecond=0):%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True, kw_only=True)
class CapacityWindow:
    """When jobs can use a pool's machines; None: without a limit on that side.

    `ends` is the time by which they must have left: earlier than the end of the reservation if the cloud takes the machines
    back before it.
    """

    begins: datetime | None = None
    ends: datetime | None = None

    def has_begun(self, now: datetime) -> bool:
        """Whether the capacity is there already, or was."""
        return self.begins is None or now >= self.begins

    def is_over(self, now: datetime) -> bool:
        """Whether the capacity is gone."""
        return self.ends is not None and now >= self.ends

    def is_open(self, now: datetime) -> bool:
        """Whether the capacity is there."""
        return self.has_begun(now) and not self.is_over(now)

    def is_open_for(self, time: timedelta, now: datetime) -> bool:
        """Whether the capacity is there, and will be for this time."""
        return self.is_open(now) and not self.is_over(now + time)

    def changes_at(self, now: datetime) -> datetime | None:
        """The next time at which the capacity begins or ends; None if there is none."""
        return min(
            (time for time in (self.begins, self.ends) if time is not None and time > now), default=None
        )


#: Without a limit: on-demand and spot pools, and reservations that are kept until they are canceled.
ALWAYS: Final = CapacityWindow()
