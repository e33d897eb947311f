"""Beginning a move: the update that suspends a job and says where it will be resumed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.fallback.state_machine.actions import Suspend
from holdfast.fallback.state_machine.procurement import NOTHING_WAITED, waited
from holdfast.fallback.state_machine.report import Report
from holdfast.fallback.state_machine.state import Phase, Purpose, ReturnStage
from holdfast.fallback.state_machine.step import Step

if TYPE_CHECKING:
    from holdfast.fallback.policy.policy import Policy
    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.fallback.state_machine.position import Rung
    from holdfast.fallback.state_machine.state import JobState


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
