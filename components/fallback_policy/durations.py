"""Durations in the schema of a FallbackPolicy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.scheduling.quantities import DURATION_PATTERN, LONGEST_DURATION, format_duration

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

LONGEST_DURATION = len("999999h999999m999999s")


def duration(description: str) -> Json:
    """Return the schema of a duration."""
    return {
        "type": "string",
        "description": description,
        "maxLength": LONGEST_DURATION,
        "pattern": DURATION_PATTERN,
        "x-kubernetes-validations": [duration_rule()],
    }


def duration_rule() -> Json:
    """Return the rule that bounds a duration, which a pattern cannot: it matches `0m`, and the empty text."""
    longest = format_duration(LONGEST_DURATION)
    return {
        "rule": f"self != '' && duration(self) >= duration('1s') && duration(self) <= duration('{longest}')",
        "message": f"must be a time with its units from 1s to {longest}, such as 45s, 15m or 1h30m",
    }
