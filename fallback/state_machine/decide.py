"""The one function that decides: from what is kept and what is seen to what is to be done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.fallback.policy.policy import Policy
from holdfast.fallback.state_machine.actions import ForceDelete, Record, Recreate, Release, Resume, Suspend
from holdfast.fallback.state_machine.clock import on_this_clock
from holdfast.fallback.state_machine.ending import ended
from holdfast.fallback.state_machine.moving import moved
from holdfast.fallback.state_machine.obstacles import not_on_ladder, obstacle
from holdfast.fallback.state_machine.report import Report
from holdfast.fallback.state_machine.running import ran
from holdfast.fallback.state_machine.state import JobState, Phase, UnreadableState
from holdfast.fallback.state_machine.stay import NOTHING_WAITED, first_stay, new_stay, same_stay
from holdfast.fallback.state_machine.step import Step
from holdfast.fallback.state_machine.wake import next_wake

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.policy.policy import NoPolicy
    from holdfast.fallback.state_machine.actions import Action
    from holdfast.fallback.state_machine.observation import Observation


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What follows from one look at a job.

    `state` is what holds once the actions are done (None: the job is none of ours, and nothing is kept for it).
    `wake_at` is when the job must be looked at again although nothing has changed; None for never.
    """

    state: JobState | None
    actions: tuple[Action, ...] = ()
    reports: tuple[Report, ...] = ()
    wake_at: datetime | None = None


def decide(
    state: JobState | UnreadableState | None, seen: Observation, policy: Policy | NoPolicy
) -> Decision:
    """Return what is to be done now. Total and pure: every state and observation has one answer."""
    own = _own(state, seen)
    step = _first_look(seen, policy) if own is None else _known(on_this_clock(own, seen), seen, policy)
    if isinstance(state, UnreadableState) and step.state is not None:
        step = replace(step, reports=(_unreadable_report(state, seen), *step.reports))
    return _complete(state, step, seen, policy)


def _own(state: JobState | UnreadableState | None, seen: Observation) -> JobState | None:
    """The state, if it is this job's: a copied manifest brings another's, and a job made anew has one without a uid."""
    if not isinstance(state, JobState) or state.uid not in {"", seen.uid}:
        return None
    return state if state.uid else replace(state, uid=seen.uid)


def _first_look(seen: Observation, policy: Policy | NoPolicy) -> Step:
    if not seen.follows or seen.outcome is not None:
        return Step(state=None)
    in_the_way = obstacle(seen, policy)
    if in_the_way is not None or not isinstance(policy, Policy):
        return Step(state=None, reports=(in_the_way,) if in_the_way else ())
    rank = None if seen.pool is None else policy.rank_of(seen.pool)
    if seen.pool is None or rank is None:
        return Step(state=None, reports=(not_on_ladder(seen, policy),))
    first = first_stay(seen, seen.pool, rank)
    return _stopped(first) if seen.suspended else ran(first, seen, policy)


def _known(state: JobState, seen: Observation, policy: Policy | NoPolicy) -> Step:
    if seen.outcome is not None:
        return ended(state, seen, policy)
    if state.suspended_by_us:
        return moved(state, seen, policy)
    in_the_way = obstacle(seen, policy) if seen.follows else None
    if in_the_way is not None or not seen.follows or not isinstance(policy, Policy):
        left = replace(state, returning=None)
        return Step(state=left, reports=(in_the_way,) if in_the_way else ())
    if seen.suspended:
        return Step(state=state) if state.phase is Phase.STOPPED else _stopped(state)
    if state.phase in {Phase.STOPPED, Phase.FINISHED}:
        # Whoever stopped it may have done so for hours: the stay's clock starts again, its counts go on.
        state = replace(same_stay(state, seen), since=seen.now)
    if seen.pool != state.pool:
        return _put_elsewhere(state, seen, policy)
    return ran(state, seen, policy)


def _stopped(state: JobState) -> Step:
    stopped = replace(
        state,
        phase=Phase.STOPPED,
        waiting_since=None,
        waited=NOTHING_WAITED,
        purpose=None,
        suspended_at=None,
        returning=None,
    )
    return Step(
        state=stopped,
        reports=(
            Report(
                reason="StoppedByOther",
                message=(
                    "The job is suspended, and not by its ladder: it stays so until whoever suspended it sets "
                    "`suspend: false`."
                ),
            ),
        ),
    )


def _put_elsewhere(state: JobState, seen: Observation, policy: Policy) -> Step:
    """Somebody has changed what the job's pods select while it was suspended: that is where it is now."""
    rank = None if seen.pool is None else policy.rank_of(seen.pool)
    if seen.pool is None or rank is None:
        return Step(state=replace(state, returning=None), reports=(not_on_ladder(seen, policy),))
    return ran(new_stay(replace(state, returning=None), seen, pool=seen.pool, rank=rank), seen, policy)


def _unreadable_report(state: UnreadableState, seen: Observation) -> Report:
    suspended = " It is suspended, and is left so: `suspend: false` resumes it." if seen.suspended else ""
    return Report(
        reason="StateUnreadable",
        message=f"What was kept of the job cannot be read ({state.problem}): counting begins anew.{suspended}",
        is_warning=True,
    )


def _complete(
    before: JobState | UnreadableState | None, step: Step, seen: Observation, policy: Policy | NoPolicy
) -> Decision:
    """Return the step with what goes along with any of them: the record, and what nobody needs any more."""
    actions = step.actions
    is_carried = any(isinstance(action, Suspend | Resume | Recreate) for action in actions)
    if step.state is not None and step.state != before and not is_carried:
        actions = (Record(state=step.state), *actions)
    is_returning = step.state is not None and step.state.returning is not None
    if seen.held is not None and not is_returning:
        actions = (*actions, Release())
    is_ours = step.state is not None and (seen.follows or step.state.suspended_by_us)
    if is_ours and seen.dead_pods:
        actions = (*actions, ForceDelete(pods=seen.dead_pods))
    return Decision(
        state=step.state,
        actions=actions,
        reports=(*step.reports, *(seen.notices if step.state is not None else ())),
        wake_at=None if step.state is None else next_wake(step.state, seen, policy),
    )
