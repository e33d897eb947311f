"""What is said of a job for as long as it is so, whichever kind it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.fallback.jobs.memory import records
from holdfast.fallback.state_machine.report import Report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.fallback.jobs.memory import JobMemory

_NAMED: Final = 3


def ends_well_when_stopped(memory: JobMemory) -> tuple[Report, ...]:
    """Say that pods exit 0 when they are told to stop, which their operator takes for the training's success."""
    names = sorted(
        record.name
        for _, record in records(memory)
        if record.ending.succeeded and (record.ending.disrupted_at or record.ending.deleted_at)
    )
    if not names:
        return ()
    return (
        standing(
            "EndsWellWhenStopped",
            f"{listed(names)} ended with exit code 0 when told to stop, which completes the job although its training "
            "is not done: have the program exit with another code after the checkpoint that it writes on SIGTERM.",
        ),
    )


def standing(reason: str, message: str) -> Report:
    """Return a warning that comes with every look for as long as it holds."""
    return Report(reason=reason, message=message, is_warning=True, is_standing=True)


def listed(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    shown = list(names)
    more = len(shown) - _NAMED
    return ", ".join(shown[:_NAMED]) + (f" and {more} more" if more > 0 else "")
