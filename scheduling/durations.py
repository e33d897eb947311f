"""Durations as users write them: `15m`, `1h30m`, `45s`."""

import re
from datetime import timedelta
from typing import Final

# Also what the FallbackPolicy's schema holds a duration to. The parts come in this order, each at most once.
PATTERN: Final = r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$"

# Beyond a month a wait is a mistyped unit, not a wish.
LONGEST: Final = timedelta(hours=720)

ALLOWED: Final = "a time with its units, 1s to 720h, such as 45s, 15m or 1h30m"

_PARTS: Final = re.compile(PATTERN, re.ASCII)
_SECOND: Final = timedelta(seconds=1)


class DurationError(ValueError):
    """A text that is no duration: `fix` says what to write instead."""

    def __init__(self, text: str, fix: str) -> None:
        super().__init__(f'"{text}" is no duration. Allowed: {ALLOWED}. {fix}')
        self.fix = fix


def parse_duration(text: str) -> timedelta:
    """Read `1h30m`, `15m` or `45s`.

    Raises DurationError for anything else, zero and more than 720h included.
    """
    if re.fullmatch(r"[0-9]+", text, re.ASCII):
        raise DurationError(text, f"Write {text}m, {text}s or {text}h.")
    found = _PARTS.fullmatch(text)
    if found is None or not text:
        raise DurationError(text, "Write hours, minutes and seconds in that order, such as 1h30m.")
    hours, minutes, seconds = (int(part[:-1]) if part else 0 for part in found.groups())
    duration = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if duration < _SECOND:
        raise DurationError(text, "Write at least 1s.")
    if duration > LONGEST:
        raise DurationError(text, "Write at most 720h.")
    return duration


def format_duration(duration: timedelta) -> str:
    """Write a duration the shortest way `parse_duration` reads: 5400 s → `1h30m`."""
    seconds = int(duration.total_seconds())
    parts = ((seconds // 3600, "h"), (seconds % 3600 // 60, "m"), (seconds % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count)
