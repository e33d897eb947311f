"""A job that is not suspended: what was lost is counted, its wait is measured, and it goes down, up, or nowhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.fallback.state_machine.counting import counted, failures
from holdfast.fallback.state_machine.departures import down, give_up, give_way, restart, up
from holdfast.fallback.state_machine.leaving import is_head_lost, reason_to_give_up, reason_to_leave
from holdfast.fallback.state_machine.position import current_tier, rung_below
from holdfast.fallback.state_machine.procurement import must_yield, slow_start, tracked, unmade
from holdfast.fallback.state_machine.report import Report
from holdfast.fallback.state_machine.step import Step
from holdfast.fallback.state_machine.way_back import held_rung, returned, without_late_return

if TYPE_CHECKING:
    from holdfast.fallback.policy.policy import Policy
    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.fallback.state_machine.state import JobState


def ran(state: JobState, seen: Observation, policy: Policy) -> Step:
    """Take a job that runs, or waits for nodes in order to run, one step further."""
    now = counted(state, seen, policy)
    said = _counted_report(state, now, policy)
    now, placed = tracked(now, seen)
    departure = _departure(now, seen, policy)
    if departure is None:
        step = returned(now, seen, policy)
    elif seen.can_be_suspended:
        step = departure
    else:
        step = Step(state=without_late_return(now, seen, policy), reports=(_blocked_report(),))
    standing = (*_dead_end(now, seen, policy), *unmade(now, seen), *slow_start(seen, policy))
    return replace(step, reports=(*said, *placed, *step.reports, *standing))


def _departure(state: JobState, seen: Observation, policy: Policy) -> Step | None:
    """The move that the job has to make, if it has to make one."""
    why = reason_to_leave(state, seen, policy)
    below = rung_below(state, seen, policy)
    if why is not None and below is not None:
        # What is held above is better than what lies below, and there already.
        above = held_rung(state, seen, policy)
        return up(state, seen, above) if above else down(state, seen, policy, below, why)
    if below is None:
        why_give_up = reason_to_give_up(state, seen, policy)
        if why_give_up is not None:
            return give_up(state, seen, why_give_up)
    if is_head_lost(state, seen):
        return restart(state, seen)
    return give_way(state, seen) if must_yield(state, seen, current_tier(state, policy)) else None


def _counted_report(before: JobState, after: JobState, policy: Policy) -> tuple[Report, ...]:
    spent = failures(after, policy.failures)
    if spent <= failures(before, policy.failures) or after.outage_kind is None:
        return ()
    tier = current_tier(after, policy)
    limit = tier.max_failures if tier and tier.is_spent(10**9) else None
    return (
        Report(
            reason=f"{after.outage_kind.value}Counted",
            message=f"{after.pool} has cost {spent} of {limit} failures."
            if limit is not None
            else f"{after.pool} has cost {spent} failures so far.",
        ),
    )


def _dead_end(state: JobState, seen: Observation, policy: Policy) -> tuple[Report, ...]:
    """What is said of a job that ought to leave its tier and has nowhere to go."""
    why = reason_to_leave(state, seen, policy)
    if why is None or rung_below(state, seen, policy) is not None:
        return ()
    message = (
        f"{why.message} No tier whose pool exists follows, so the job stays: add one to the FallbackPolicy."
    )
    return (replace(why, message=message, is_warning=True, is_standing=True),)


def _blocked_report() -> Report:
    return Report(
        reason="MoveBlocked",
        message="The job is to move, but would not honour a suspension now: it moves as soon as it can be suspended.",
        is_standing=True,
    )
