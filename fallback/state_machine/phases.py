"""A job that is not suspended: what was lost is counted, its wait is measured, and it goes down, up, or nowhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holdfast.fallback.policy.policy import Policy
from holdfast.fallback.state_machine.actions import DeleteChildren, DropPlaceholders, Recreate, Resume, Step
from holdfast.fallback.state_machine.capacity_wait import (
    is_over,
    must_yield,
    pause,
    slow_start,
    tracked,
    unmade,
)
from holdfast.fallback.state_machine.events import Report
from holdfast.fallback.state_machine.failback import held_rung, returned, without_late_return
from holdfast.fallback.state_machine.failover import (
    again,
    down,
    give_up,
    give_way,
    is_head_lost,
    reason_to_give_up,
    reason_to_leave,
    restart,
    tolerates_hold,
    up,
)
from holdfast.fallback.state_machine.observation import Cause, Outcome
from holdfast.fallback.state_machine.outages import counted, failures
from holdfast.fallback.state_machine.state import Phase, Purpose
from holdfast.fallback.state_machine.tier_visit import (
    NOTHING_WAITED,
    current_tier,
    is_there,
    new_stay,
    rung_below,
    same_stay,
)

if TYPE_CHECKING:
    from holdfast.fallback.policy.policy import NoPolicy
    from holdfast.fallback.state_machine.actions import Action
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


# Whatever resumes a job three times in one move (a GitOps tool that writes `suspend: false`) will do it for ever.
MOST_REASSERTED: Final = 3

# Longer than any notice and most grace periods: what still terminates then is held up by something.
SLOW_SUSPENSION: Final = timedelta(minutes=10)


def moved(state: JobState, seen: Observation, policy: Policy | NoPolicy) -> Step:
    """Take a suspended job one step further. It is brought to an end even if the job no longer follows the ladder."""
    if not seen.suspended:
        return _resumed_by_other(state, seen)
    if seen.queued:
        return _handed_over(state)
    if state.phase is Phase.GIVEN_UP:
        return Step(state=state)
    if state.phase is Phase.PAUSED:
        return _paused(state, seen, policy)
    return _suspending(state, seen, policy)


def _suspending(state: JobState, seen: Observation, policy: Policy | NoPolicy) -> Step:
    state = _with_valid_target(state, seen, policy)
    if seen.pool != state.pool:
        return Step(state=state, actions=(again(state),))
    if seen.pods_left > 0 or not seen.at_rest:
        return Step(state=state, reports=_slowness(state, seen))
    if seen.outdated_children > 0:
        return Step(state=state, actions=(DeleteChildren(),), reports=_slowness(state, seen))
    if state.purpose is Purpose.YIELD:
        return Step(
            state=replace(
                state, phase=Phase.PAUSED, resume_at=seen.now + pause(state), yields=state.yields + 1
            )
        )
    return _resumed(state, seen)


def _with_valid_target(state: JobState, seen: Observation, policy: Policy | NoPolicy) -> JobState:
    """Return the state with another tier to go to where the one it was bound for is not to be had any more."""
    if not isinstance(policy, Policy):
        return state
    if current_tier(state, policy) is not None and is_there(state.pool, seen):
        return state
    rung = rung_below(state, seen, policy)
    if rung is None or rung.pool == state.pool:
        return state
    return replace(state, pool=rung.pool, rank=rung.rank, purpose=Purpose.DOWN, returning=None)


def _resumed(state: JobState, seen: Observation) -> Step:
    is_move = state.purpose in {Purpose.DOWN, Purpose.UP}
    is_return = tolerates_hold(state)
    resumed = (
        new_stay(state, seen, pool=state.pool, rank=state.rank, returned=is_return)
        if is_move
        else same_stay(state, seen)
    )
    report = Report(
        reason="Moved" if is_move else "Resumed",
        message=f"No pod of the job is left; it is resumed on {state.pool}, from its latest checkpoint.",
    )
    return Step(state=resumed, actions=_resuming(resumed, is_return=is_return), reports=(report,))


def _resuming(state: JobState, *, is_return: bool) -> tuple[Action, ...]:
    resume = Resume(state=state, pool=state.pool, tolerate_hold=is_return)
    return (resume, DropPlaceholders()) if is_return else (resume,)


def _paused(state: JobState, seen: Observation, policy: Policy | NoPolicy) -> Step:
    is_followed = isinstance(policy, Policy) and seen.follows
    if is_followed and not is_over(state.resume_at, seen.now):
        return Step(state=state)
    if seen.pods_left > 0 or seen.pool != state.pool or seen.outdated_children > 0:
        return Step(state=replace(state, phase=Phase.SUSPENDING, purpose=Purpose.RESTART, resume_at=None))
    return _resumed(state, seen)


def _resumed_by_other(state: JobState, seen: Observation) -> Step:
    """Somebody else has resumed the job.

    In the middle of a move it is suspended again, or the gangs of two tiers would write one checkpoint; but not for
    ever, since whoever insists must find the job running in the end.
    """
    if state.phase is Phase.SUSPENDING and state.reasserted < MOST_REASSERTED:
        held = replace(state, reasserted=state.reasserted + 1)
        return Step(state=held, actions=(again(held),), reports=(_reasserted_report(held),))
    pool = seen.pool or state.pool
    if state.phase is Phase.PAUSED:
        resumed = same_stay(state, seen)
    else:
        resumed = new_stay(replace(state, returning=None), seen, pool=pool, rank=state.rank)
    return Step(
        state=resumed,
        reports=(
            Report(
                reason="ResumedByOther",
                message=f"Somebody else has resumed the job: it stays on {pool}, and counting begins anew there.",
                is_warning=state.phase is Phase.SUSPENDING,
            ),
        ),
    )


def _handed_over(state: JobState) -> Step:
    """Kueue has taken the job over while it was suspended: whether it runs is Kueue's to say from now on."""
    return Step(
        state=replace(state, phase=Phase.STOPPED, purpose=None, resume_at=None, returning=None),
        reports=(
            Report(
                reason="HandedOver",
                message="Kueue manages the job now and resumes it when it is admitted; the ladder leaves it alone.",
                is_warning=True,
            ),
        ),
    )


def _reasserted_report(state: JobState) -> Report:
    return Report(
        reason="SuspendedAgain",
        message=(
            f"Somebody resumed the job in the middle of its move to {state.pool}, when two of its gangs could have run "
            f"at once: it is suspended again ({state.reasserted} of {MOST_REASSERTED}). Leave `suspend` out of "
            "manifests that are applied again and again."
        ),
        is_warning=True,
    )


def _slowness(state: JobState, seen: Observation) -> tuple[Report, ...]:
    if state.suspended_at is None or seen.now < state.suspended_at + SLOW_SUSPENSION:
        return ()
    return (
        Report(
            reason="SlowSuspension",
            message=(
                f"{seen.pods_left} pods and {seen.outdated_children} child Jobs are left of the job since it was "
                "suspended; it is resumed once none is. Look for finalizers, a long grace period or a node that "
                "does not answer."
            ),
            is_warning=True,
            is_standing=True,
        ),
    )


# Evictions are counted out long before; this ends what only looks like one.
MOST_RECREATIONS: Final = 10


def ended(state: JobState, seen: Observation, policy: Policy | NoPolicy) -> Step:
    """Close the state of a job that has completed or failed, or make the job anew where it asks for that."""
    if state.phase is Phase.FINISHED:
        return Step(state=state)
    if isinstance(policy, Policy) and _is_to_be_recreated(state, seen):
        return _recreated(state, seen, policy)
    finished = replace(
        state,
        phase=Phase.FINISHED,
        waiting_since=None,
        waited=NOTHING_WAITED,
        purpose=None,
        suspended_at=None,
        resume_at=None,
        returning=None,
    )
    return Step(state=finished, reports=(_report(state, seen),))


def _is_to_be_recreated(state: JobState, seen: Observation) -> bool:
    wanted = seen.can_be_recreated and seen.follows and not seen.queued
    has_failed = seen.outcome is Outcome.FAILED and seen.outcome_cause not in {None, Cause.APPLICATION}
    return wanted and has_failed and state.recreated < MOST_RECREATIONS


def _recreated(state: JobState, seen: Observation, policy: Policy) -> Step:
    hurt = state if state.suspended_by_us else replace(state, evictions=state.evictions + 1)
    tier = current_tier(hurt, policy)
    is_spent = tier is None or tier.is_spent(failures(hurt, policy.failures))
    below = rung_below(hurt, seen, policy) if is_spent else None
    fresh = same_stay(hurt, seen) if below is None else new_stay(hurt, seen, pool=below.pool, rank=below.rank)
    # A job made anew has a uid that is not known yet, and an operator that counts from 0.
    anew = replace(
        fresh,
        uid="",
        restarts=0,
        disrupted_restarts=0,
        returning=None,
        recreated=state.recreated + 1,
        suspended_at=None,
    )
    return Step(
        state=anew,
        actions=(Recreate(state=anew, pool=anew.pool),),
        reports=(
            Report(
                reason="Recreated",
                message=(
                    f"The job failed by an eviction, and a job that has ended cannot be resumed: it is made anew on "
                    f"{anew.pool} ({anew.recreated} of {MOST_RECREATIONS})."
                ),
                is_warning=True,
            ),
        ),
    )


def _report(state: JobState, seen: Observation) -> Report:
    where = "in the middle of a move" if state.phase is Phase.SUSPENDING else f"on {state.pool}"
    if seen.outcome is Outcome.COMPLETED:
        return Report(reason="Completed", message=f"The job has completed, {where}.")
    return Report(
        reason="Failed",
        message=(
            f"The job has failed, {where}, and a job that has failed cannot be resumed: create it again, and it goes "
            "on from its latest checkpoint."
        ),
        is_warning=True,
    )
