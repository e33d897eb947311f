"""Whether a job has to leave its tier, or to be given up: the limits of a tier, held against what was counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holdfast.fallback.state_machine.actions import Step, Suspend
from holdfast.fallback.state_machine.capacity_wait import NOTHING_WAITED, is_over, wait_ends, waited
from holdfast.fallback.state_machine.events import Report
from holdfast.fallback.state_machine.outages import failures
from holdfast.fallback.state_machine.state import Phase, Purpose, ReturnStage
from holdfast.fallback.state_machine.tier_visit import current_tier, is_there, rung_below
from holdfast.scheduling.ladder import UNLIMITED, Failures
from holdfast.scheduling.quantities import format_duration

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.policy.policy import Policy, PolicyTier
    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.fallback.state_machine.state import JobState
    from holdfast.fallback.state_machine.tier_visit import Rung


# A pool that is replaced is gone for some seconds; a job that waits for it is not sent down the ladder for that.
MISSING_POOL_GRACE: Final = timedelta(minutes=1)

# A head that comes back by itself does so within this time; after it the operator waits for it for ever.
HEAD_PATIENCE: Final = timedelta(minutes=2)

# A head that is lost so often on one tier is not to be had there.
MOST_HEAD_RESTARTS: Final = 5


def reason_to_leave(state: JobState, seen: Observation, policy: Policy) -> Report | None:
    """Why the job must go on to the next tier, if it must."""
    tier = current_tier(state, policy)
    if tier is None:
        return _reason_without_tier(state, seen)
    if not is_there(state.pool, seen) and is_over(missing_pool_ends(state), seen.now):
        return Report(
            reason="PoolMissing",
            message=f"The pool {state.pool} does not exist, so its capacity is not waited for.",
            is_warning=True,
        )
    spent = failures(state, policy.failures)
    if tier.is_spent(spent):
        return Report(
            reason="FailuresSpent",
            message=f"{state.pool} has cost {spent} of maxFailures {tier.max_failures}.",
        )
    if tier.procurement_timeout and is_over(wait_ends(state, tier.procurement_timeout), seen.now):
        return Report(
            reason="NoCapacity",
            message=(
                f"{seen.pods_placed} of {seen.pods_expected} pods have nodes in {state.pool} after "
                f"procurementTimeout {format_duration(tier.procurement_timeout)}."
            ),
        )
    if _is_head_hopeless(state, seen):
        return Report(
            reason="HeadLost",
            message=f"The Ray head has been lost or silent on {state.pool} again, after {MOST_HEAD_RESTARTS} restarts.",
            is_warning=True,
        )
    return None


def reason_to_give_up(state: JobState, seen: Observation, policy: Policy) -> Report | None:
    """Why the job must be given up on the last tier, if it must."""
    budget = _application_budget(policy)
    if budget is not None and state.application_failures >= budget:
        return _given_up(
            f"its program has failed {state.application_failures} times on the last tier, {state.pool} "
            f"(applicationFailures: {policy.application_failures})"
        )
    if policy.give_up_after and is_over(wait_ends(state, policy.give_up_after), seen.now):
        return _given_up(
            f"the last tier, {state.pool}, has had no capacity for {format_duration(policy.give_up_after)} "
            "(giveUpAfter)"
        )
    if _is_head_hopeless(state, seen):
        return _given_up(
            f"its Ray head is lost or silent after {MOST_HEAD_RESTARTS} restarts on {state.pool}"
        )
    return None


def is_head_lost(state: JobState, seen: Observation) -> bool:
    """Whether a RayJob's head has been silent for so long that only a restart helps."""
    return is_over(head_patience_ends(state, seen), seen.now)


def head_patience_ends(state: JobState, seen: Observation) -> datetime | None:
    """When a silent head is taken for lost; silence from before the last resumption was another head's."""
    if seen.head_silent_since is None:
        return None
    return max(seen.head_silent_since, state.resumed_at or seen.head_silent_since) + HEAD_PATIENCE


def missing_pool_ends(state: JobState) -> datetime | None:
    """When a job that waits for a pool that is not there stops doing so."""
    return wait_ends(state, MISSING_POOL_GRACE)


def leave_times(state: JobState, seen: Observation, policy: Policy) -> tuple[datetime | None, ...]:
    """When what is decided here may become otherwise though nothing else changes."""
    tier: PolicyTier | None = current_tier(state, policy)
    is_last = rung_below(state, seen, policy) is None
    return (
        missing_pool_ends(state) if not is_there(state.pool, seen) else None,
        wait_ends(state, tier.procurement_timeout) if tier else None,
        wait_ends(state, policy.give_up_after) if is_last else None,
        head_patience_ends(state, seen),
    )


def _reason_without_tier(state: JobState, seen: Observation) -> Report | None:
    if seen.is_placed:
        return None
    return Report(
        reason="TierRemoved",
        message=f"{state.pool} is no longer a tier of the ladder, so a job does not wait for its capacity.",
    )


def _is_head_hopeless(state: JobState, seen: Observation) -> bool:
    return state.head_restarts >= MOST_HEAD_RESTARTS and is_head_lost(state, seen)


def _application_budget(policy: Policy) -> int | None:
    """How many failures of the program end the job on the last tier; 0 means the same as 1, as for maxFailures."""
    if policy.failures is Failures.EVICTIONS or policy.application_failures == UNLIMITED:
        return None
    return max(1, policy.application_failures)


def _given_up(why: str) -> Report:
    return Report(
        reason="GivenUp",
        message=(
            f"The job is suspended for good, since {why}. Nothing of it runs or costs any more; once the cause is "
            "mended, `suspend: false` in its spec tries the last tier again."
        ),
        is_warning=True,
    )


def down(state: JobState, seen: Observation, policy: Policy, rung: Rung, why: Report) -> Step:
    """Send the job on to a lower tier."""
    leaving = replace(
        _suspending(state, seen, Purpose.DOWN),
        pool=rung.pool,
        rank=rung.rank,
        returning=None,
        bounces=_bounces(state, seen, policy),
    )
    said = replace(why, message=f"{why.message} The job moves on to {rung.pool}.")
    return _suspended(leaving, said)


def up(state: JobState, seen: Observation, rung: Rung) -> Step:
    """Send the job to the better tier whose capacity is held for it."""
    returning = replace(state.returning, stage=ReturnStage.MOVING) if state.returning else None
    leaving = replace(
        _suspending(state, seen, Purpose.UP), pool=rung.pool, rank=rung.rank, returning=returning
    )
    return _suspended(
        leaving,
        Report(
            reason="ReturnMoving",
            message=f"Every node that the job needs in {rung.pool} is held for it: it moves there from {state.pool}.",
        ),
    )


def give_way(state: JobState, seen: Observation) -> Step:
    """Let go of the nodes that a half-placed gang sits on."""
    leaving = replace(_suspending(state, seen, Purpose.YIELD), waited=waited(state, seen.now), returning=None)
    return _suspended(
        leaving,
        Report(
            reason="Yielded",
            message=(
                f"{seen.pods_placed} of {seen.pods_expected} pods have nodes in {state.pool}, which another job's gang "
                "waits for as well: the younger job lets go of its nodes for a while."
            ),
        ),
    )


def restart(state: JobState, seen: Observation) -> Step:
    """Start a job over where it is, since its head is lost."""
    leaving = replace(
        _suspending(state, seen, Purpose.RESTART),
        waited=NOTHING_WAITED,
        returning=None,
        head_restarts=state.head_restarts + 1,
    )
    return _suspended(
        leaving,
        Report(
            reason="HeadLost",
            message="The Ray head has been lost or silent for too long: the job starts over on the same tier.",
            is_warning=True,
        ),
    )


def give_up(state: JobState, seen: Observation, why: Report) -> Step:
    """Suspend the job for good."""
    ended = replace(
        state,
        phase=Phase.GIVEN_UP,
        waiting_since=None,
        waited=NOTHING_WAITED,
        suspended_at=seen.now,
        returning=None,
    )
    return Step(state=ended, actions=(Suspend(state=ended, pool=ended.pool),), reports=(why,))


def again(state: JobState) -> Suspend:
    """The update that brings a suspended job's template to the tier it will be resumed on."""
    return Suspend(state=state, pool=state.pool, tolerate_hold=tolerates_hold(state))


def tolerates_hold(state: JobState) -> bool:
    """Whether the job is on its way onto nodes that are held for it."""
    return state.returning is not None and state.returning.stage is ReturnStage.MOVING


def _suspending(state: JobState, seen: Observation, purpose: Purpose) -> JobState:
    return replace(
        state,
        phase=Phase.SUSPENDING,
        purpose=purpose,
        suspended_at=seen.now,
        waiting_since=None,
        resume_at=None,
        reasserted=0,
    )


def _suspended(state: JobState, report: Report) -> Step:
    return Step(state=state, actions=(again(state),), reports=(report,))


def _bounces(state: JobState, seen: Observation, policy: Policy) -> int:
    """How many returns in a row have not lasted: a stay that is shorter than the wait for it was for nothing."""
    if not state.returned or policy.return_after is None:
        return state.bounces
    return state.bounces + 1 if seen.now - state.since < policy.return_after else 0
