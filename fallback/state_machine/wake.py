"""When a job has to be looked at again although nothing has changed: the next of its waits to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.fallback.policy.policy import Policy
from holdfast.fallback.state_machine.counting import unreachable_until
from holdfast.fallback.state_machine.leaving import leave_times
from holdfast.fallback.state_machine.moving import SLOW_SUSPENSION
from holdfast.fallback.state_machine.position import current_tier
from holdfast.fallback.state_machine.procurement import unmade_from, yields_at
from holdfast.fallback.state_machine.state import Phase
from holdfast.fallback.state_machine.way_back import return_times

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.policy.policy import NoPolicy
    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.fallback.state_machine.state import JobState


def next_wake(state: JobState, seen: Observation, policy: Policy | NoPolicy) -> datetime | None:
    """The first time ahead at which the decision may be another one; None where no time changes anything."""
    ahead = [time for time in _times(state, seen, policy) if time is not None and time > seen.now]
    return min(ahead, default=None)


def _times(state: JobState, seen: Observation, policy: Policy | NoPolicy) -> tuple[datetime | None, ...]:
    match state.phase:
        case Phase.SUSPENDING:
            return (None if state.suspended_at is None else state.suspended_at + SLOW_SUSPENSION,)
        case Phase.PAUSED:
            return (state.resume_at,)
        case Phase.WAITING | Phase.RUNNING if isinstance(policy, Policy):
            return _running_times(state, seen, policy)
        case _:
            return ()


def _running_times(state: JobState, seen: Observation, policy: Policy) -> tuple[datetime | None, ...]:
    starts_late = None if seen.starting_since is None else seen.starting_since + policy.start_timeout
    yields = yields_at(state, seen, current_tier(state, policy))
    return (
        unreachable_until(state, seen),
        starts_late,
        unmade_from(state, seen),
        yields,
        *leave_times(state, seen, policy),
        *return_times(state, policy),
    )
