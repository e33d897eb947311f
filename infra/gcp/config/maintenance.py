"""When a GKE cluster is upgraded, and when its nodes are not."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

from pydantic import Field

from holdfast.infra.config.section import Section
from holdfast.infra.config.times import DATE_ALLOWED, TIME_ALLOWED, Day, TimeOfDay, Weekday

_A_MONDAY: Final = datetime(2026, 1, 5, tzinfo=UTC)


class MaintenanceWindow(Section):
    """When GKE may upgrade, every week."""

    days: tuple[Weekday, ...] = Field(
        default=(Weekday.SATURDAY, Weekday.SUNDAY),
        min_length=1,
        max_length=7,
        description="a list of days of the week, such as saturday",
        examples=["[saturday, sunday]"],
    )
    start: TimeOfDay = Field(default="02:00", description=TIME_ALLOWED, examples=['"02:00"'])
    hours: int = Field(default=8, ge=4, le=24, description="a whole number of hours, 4 to 24", examples=["8"])

    @property
    def recurrence(self) -> str:
        """When it comes again, as RFC 5545 spells it."""
        return f"FREQ=WEEKLY;BYDAY={','.join(day.short for day in self._in_order())}"

    @property
    def first(self) -> tuple[str, str]:
        """Start and end of one of them, in UTC; always the same one, or each update would move it."""
        hours, minutes = (int(part) for part in self.start.split(":"))
        begin = _A_MONDAY + timedelta(days=self._in_order()[0].number, hours=hours, minutes=minutes)
        return _spelled(begin), _spelled(begin + timedelta(hours=self.hours))

    def _in_order(self) -> list[Weekday]:
        return sorted(self.days, key=lambda day: day.number)


class MaintenanceExclusion(Section):
    """While GKE upgrades neither the minor version nor any node."""

    fixes: ClassVar[Mapping[str, str]] = {"from": "Write start.", "until": "Write end.", "to": "Write end."}

    start: Day = Field(description=DATE_ALLOWED, examples=['"2026-12-01"'])
    end: Day | None = Field(
        default=None,
        description=f"{DATE_ALLOWED}, not after the end of the version's support",
        examples=['"2027-06-30"'],
    )


class GcpMaintenance(Section):
    """When the cluster is upgraded, and when its nodes are not."""

    window: MaintenanceWindow = Field(
        default_factory=MaintenanceWindow,
        description="a mapping of days, start and hours",
        examples=['{days: [saturday, sunday], start: "02:00", hours: 8}'],
    )
    exclusion: MaintenanceExclusion | None = Field(
        default=None, description="a mapping of start and end", examples=['{start: "2026-12-01"}']
    )


def _spelled(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
