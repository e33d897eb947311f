"""A job that has ended, whether by itself, in the middle of a move, or for lack of a head."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holdfast.fallback.policy.policy import Policy
from holdfast.fallback.state_machine.actions import Recreate
from holdfast.fallback.state_machine.counting import failures
from holdfast.fallback.state_machine.observation import Cause, Outcome
from holdfast.fallback.state_machine.position import current_tier, rung_below
from holdfast.fallback.state_machine.report import Report
from holdfast.fallback.state_machine.state import Phase
from holdfast.fallback.state_machine.stay import NOTHING_WAITED, new_stay, same_stay
from holdfast.fallback.state_machine.step import Step

if TYPE_CHECKING:
    from holdfast.fallback.policy.policy import NoPolicy
    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.fallback.state_machine.state import JobState

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
