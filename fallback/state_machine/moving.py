"""A job that is suspended by us: from the update that suspended it to the one that resumes it elsewhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holdfast.fallback.policy.policy import Policy
from holdfast.fallback.state_machine.actions import DeleteChildren, DropPlaceholders, Resume
from holdfast.fallback.state_machine.departures import again, tolerates_hold
from holdfast.fallback.state_machine.position import current_tier, is_there, rung_below
from holdfast.fallback.state_machine.procurement import is_over, pause
from holdfast.fallback.state_machine.report import Report
from holdfast.fallback.state_machine.state import Phase, Purpose
from holdfast.fallback.state_machine.stay import new_stay, same_stay
from holdfast.fallback.state_machine.step import Step

if TYPE_CHECKING:
    from holdfast.fallback.policy.policy import NoPolicy
    from holdfast.fallback.state_machine.actions import Action
    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.fallback.state_machine.state import JobState

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
