"""How much maintenance a recurring window lets happen."""

import re
from datetime import datetime
from typing import Final

from holdfast.scheduling.json import Json

# What GKE wants in any 32 days, and the shortest time that counts.
_DAYS: Final = 32
_SHORTEST: Final = 4.0
_WEEK: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def hours_in_32_days(window: Json) -> float | None:
    """Return the fewest hours of a window in any 32 days; None for a recurrence that is not daily or by weekday."""
    times = _times(str(window.get("recurrence")))
    hours = _length(window)
    if times is None or hours is None:
        return None
    return times * hours if hours >= _SHORTEST else 0.0


def _length(window: Json) -> float | None:
    try:
        start, end = (datetime.fromisoformat(str(window.get(name))) for name in ("startTime", "endTime"))
    except ValueError:
        return None
    return (end - start).total_seconds() / 3600


def _times(recurrence: str) -> int | None:
    if recurrence == "FREQ=DAILY":
        return _DAYS
    match = re.fullmatch(r"FREQ=WEEKLY;BYDAY=([A-Z,]+)", recurrence)
    if match is None:
        return None
    chosen = [day in match[1].split(",") for day in _WEEK]
    weeks, further = divmod(_DAYS, len(_WEEK))
    rest = min(sum((chosen + chosen)[first : first + further]) for first in range(len(_WEEK)))
    return weeks * sum(chosen) + rest
