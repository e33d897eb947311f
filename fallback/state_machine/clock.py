"""Clocks that jump: times that were kept by one clock, brought to the one that is read now."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holdfast.fallback.state_machine.observation import NO_JUMP

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.fallback.state_machine.state import JobState

# Less than this is a clock that is being steered; every wait here is longer.
TOLERANCE: Final = timedelta(seconds=5)

# A pause is the one time that lies ahead by right; none is longer.
LONGEST_PAUSE: Final = timedelta(minutes=20)


def on_this_clock(state: JobState, seen: Observation) -> JobState:
    """Return the state with all times of our own clock shifted by its jump, and none of them in the future.

    A jump forward would else end every wait at once, and a jump back would make them last for ever. Times that came
    with a loss are by another clock and stay as they are, or a loss would be counted a second time.
    """
    jump = seen.clock_jump if abs(seen.clock_jump) >= TOLERANCE else NO_JUMP
    if jump == NO_JUMP and not _is_ahead(state, seen.now):
        return state
    latest = seen.now + TOLERANCE

    def brought(time: datetime, ahead: timedelta = NO_JUMP) -> datetime:
        shifted = time + jump
        return shifted if shifted <= latest + ahead else seen.now + ahead

    def brought_if_any(time: datetime | None, ahead: timedelta = NO_JUMP) -> datetime | None:
        return None if time is None else brought(time, ahead)

    returning = state.returning
    return replace(
        state,
        since=brought(state.since),
        waiting_since=brought_if_any(state.waiting_since),
        outage_seen_at=brought_if_any(state.outage_seen_at),
        resumed_at=brought_if_any(state.resumed_at),
        suspended_at=brought_if_any(state.suspended_at),
        resume_at=brought_if_any(state.resume_at, LONGEST_PAUSE),
        tried_return_at=brought_if_any(state.tried_return_at),
        returning=returning
        and replace(returning, since=brought(returning.since), asked_at=brought_if_any(returning.asked_at)),
    )


def _is_ahead(state: JobState, now: datetime) -> bool:
    """Whether any time of the state lies further ahead than it may."""
    attempt = state.returning
    times = (
        state.since,
        state.waiting_since,
        state.outage_seen_at,
        state.resumed_at,
        state.suspended_at,
        state.tried_return_at,
        attempt and attempt.since,
        attempt and attempt.asked_at,
        state.resume_at and state.resume_at - LONGEST_PAUSE,
    )
    latest = now + TOLERANCE
    return any(time > latest for time in times if time is not None)
