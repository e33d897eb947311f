"""The one function that decides: from what is kept and what is seen to what is to be done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holdfast.fallback.policy.policy import NoPolicy, Policy
from holdfast.fallback.state_machine.actions import (
    ForceDelete,
    Record,
    Recreate,
    Release,
    Resume,
    Step,
    Suspend,
)
from holdfast.fallback.state_machine.capacity_wait import unmade_from, yields_at
from holdfast.fallback.state_machine.events import Report
from holdfast.fallback.state_machine.failback import return_times
from holdfast.fallback.state_machine.failover import leave_times
from holdfast.fallback.state_machine.observation import NO_JUMP
from holdfast.fallback.state_machine.outages import unreachable_until
from holdfast.fallback.state_machine.phases import SLOW_SUSPENSION, ended, moved, ran
from holdfast.fallback.state_machine.state import JobState, Phase, UnreadableState
from holdfast.fallback.state_machine.tier_visit import (
    NOTHING_WAITED,
    current_tier,
    first_stay,
    new_stay,
    same_stay,
)
from holdfast.scheduling.labels import FOLLOWS, FOLLOWS_VALUE, LADDER, POOL, STAYS_VALUE

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.state_machine.actions import Action
    from holdfast.fallback.state_machine.observation import Observation


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


def obstacle(seen: Observation, policy: Policy | NoPolicy) -> Report | None:
    """What keeps the ladder from touching a job that follows it, and the fix; None where nothing does."""
    if seen.queued:
        return _standing(
            "ManagedByKueue",
            "Kueue manages the job and would undo what the ladder does, so it is left alone. Take the label "
            "kueue.x-k8s.io/queue-name off a job that is to follow the ladder, or order Kueue's flavors instead.",
        )
    if seen.never_suspendable is not None:
        return _standing(
            "CannotFollow", f"The job cannot be suspended, so it stays where it is: {seen.never_suspendable}"
        )
    if isinstance(policy, NoPolicy):
        return _without_policy(policy)
    return None


def not_on_ladder(seen: Observation, policy: Policy) -> Report:
    """What is said of a job whose pods select none of the ladder's pools."""
    selected = f"the pool {seen.pool}" if seen.pool else "no pool, or several"
    pools = ", ".join(tier.pool for tier in policy.tiers)
    return _standing(
        "NotOnLadder",
        f"The job's pods select {selected}, and its ladder has {pools}: it is left alone. Create it with the selector "
        f'`{POOL}: {policy.tiers[0].pool}`, or with the label `{FOLLOWS}: "{STAYS_VALUE}"` if it is to stay where it is.',
    )


def _without_policy(policy: NoPolicy) -> Report:
    if policy.problems:
        return _standing(
            "PolicyUnusable",
            f"The FallbackPolicy {LADDER} cannot be followed, so the job stays where it is: {' '.join(policy.problems)}",
        )
    return _standing(
        "NoPolicy",
        f'The job says `{FOLLOWS}: "{FOLLOWS_VALUE}"`, but its namespace has no FallbackPolicy called {LADDER}: it stays '
        "where it is. Create one, or take the label off.",
    )


def _standing(reason: str, message: str) -> Report:
    return Report(reason=reason, message=message, is_warning=True, is_standing=True)


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
