"""The rules of when a GKE cluster is upgraded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.gcp.config.maintenance import GcpMaintenance, MaintenanceExclusion, MaintenanceWindow

#: GKE wants so many hours in which it may upgrade among any 32 days, of which 28 are whole weeks.
_FEWEST_HOURS: Final = 48
_WEEKS: Final = 4


def maintenance_problems(maintenance: GcpMaintenance, at: str) -> Iterator[Problem]:
    """Windows that GKE takes for too short, and exclusions that end before they begin."""
    yield from _window(maintenance.window, f"{at}.window")
    if maintenance.exclusion is not None:
        yield from _exclusion(maintenance.exclusion, f"{at}.exclusion")


def _window(window: MaintenanceWindow, at: str) -> Iterator[Problem]:
    days = window.days
    for index, day in enumerate(days):
        if day in days[:index]:
            yield Problem(
                field=f"{at}.days[{index}]",
                value=f"{shown(day.value)} a second time",
                allowed="each day once",
                fix="Remove one of the two.",
            )
    a_week = len(set(days)) * window.hours
    if a_week * _WEEKS < _FEWEST_HOURS:
        enough = -(-_FEWEST_HOURS // (_WEEKS * len(set(days))))
        yield Problem(
            field=f"{at}.hours",
            value=f"{window.hours} on {len(set(days))} days, {a_week} hours a week",
            allowed=f"{_FEWEST_HOURS // _WEEKS} hours a week or more: GKE refuses a window that leaves it less",
            fix=f"Write `hours: {enough}`, or more days.",
        )


def _exclusion(exclusion: MaintenanceExclusion, at: str) -> Iterator[Problem]:
    if exclusion.end is not None and exclusion.end <= exclusion.start:
        yield Problem(
            field=f"{at}.end",
            value=f"{exclusion.end}, while it starts on {exclusion.start}",
            allowed="a day after the start",
            fix="Write a later one, or leave it out for an exclusion until the version's support ends.",
        )
