"""`decide`: from a job's recorded state and its observation to the actions, the events and the time of the next reconciliation.

Also: why the controller ignores a job, and how recorded times follow jumps of the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pulumi_holdfast.controller.jobs.actions import (
    Action,
    EventReason,
    ForceDelete,
    JobEvent,
    JobStep,
    Recreate,
    ReleaseReservation,
    Resume,
    Suspend,
    WriteState,
    standing_event,
)
from pulumi_holdfast.controller.jobs.observation import NO_JUMP, Observation
from pulumi_holdfast.controller.jobs.state import JobState, Phase, Purpose, UnreadableState
from pulumi_holdfast.controller.state_machine.away import seen_there
from pulumi_holdfast.controller.state_machine.failback import failback_deadlines
from pulumi_holdfast.controller.state_machine.failover import SLOW_SUSPENSION_AFTER, failover_deadlines
from pulumi_holdfast.controller.state_machine.ledger import LEDGER_INTERVAL, ledger_due_at, with_ledger
from pulumi_holdfast.controller.state_machine.outages import unreachable_deadline
from pulumi_holdfast.controller.state_machine.pacing import paced_policy, pacing_deadlines, track_pace
from pulumi_holdfast.controller.state_machine.phases import step_finished, step_running, step_suspended
from pulumi_holdfast.controller.state_machine.refusal import judgement_events, step_refused
from pulumi_holdfast.controller.state_machine.spending_limits import limited_policy, spending_deadlines
from pulumi_holdfast.controller.state_machine.stops import step_stop, step_suspended_externally
from pulumi_holdfast.controller.state_machine.tier_visit import (
    current_tier,
    first_tier_visit,
    is_reached,
    new_tier_visit,
    pods_missing_deadline,
    resume_tier_visit,
    with_expected_restart,
    yield_deadline,
)
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.labels import FOLLOWS, FOLLOWS_VALUE, LADDER, POOL, STAYS_VALUE
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy


def next_requeue(state: JobState, observation: Observation, policy: Policy | NoPolicy) -> datetime | None:
    """The first future time at which the decision may change; None if time changes nothing."""
    times = (*_times(state, observation, policy), _ledger_requeue(state, observation))
    return min((time for time in times if time is not None and time > observation.now), default=None)


def _ledger_requeue(state: JobState, observation: Observation) -> datetime | None:
    return state.ledger.counted_until + LEDGER_INTERVAL if state.ledger and observation.uses_nodes else None


def _times(
    state: JobState, observation: Observation, policy: Policy | NoPolicy
) -> tuple[datetime | None, ...]:
    match state.phase:
        case Phase.SUSPENDING:
            return (None if state.suspended_at is None else state.suspended_at + SLOW_SUSPENSION_AFTER,)
        case Phase.PAUSED:
            return (state.resume_at,)
        case Phase.WAITING | Phase.RUNNING | Phase.AWAY if isinstance(policy, Policy):
            observation = seen_there(state, observation)
            bounded = paced_policy(state, observation, limited_policy(state, observation, policy))
            return (
                *_running_times(state, observation, bounded),
                *pacing_deadlines(state, observation, policy),
                *spending_deadlines(state, observation, policy),
            )
        case _:
            return ()


def _running_times(state: JobState, observation: Observation, policy: Policy) -> tuple[datetime | None, ...]:
    starts_late = (
        None if observation.starting_since is None else observation.starting_since + policy.start_timeout
    )
    yields = yield_deadline(state, observation, current_tier(state, policy))
    return (
        unreachable_deadline(state, observation),
        starts_late,
        pods_missing_deadline(state, observation),
        yields,
        *failover_deadlines(state, observation, policy),
        *failback_deadlines(state, observation, policy),
    )


def blocking_event(observation: Observation, policy: Policy | NoPolicy) -> JobEvent | None:
    """Return why the controller must not touch a job that follows the ladder, and the fix; None if it may."""
    if observation.is_managed_by_kueue:
        return standing_event(
            EventReason.CANNOT_FOLLOW,
            "Kueue manages the job and would revert the fallback controller's changes, so it is ignored. Remove the label "
            "kueue.x-k8s.io/queue-name from a job that must follow the ladder, or order Kueue's flavors instead.",
        )
    if observation.not_suspendable_reason is not None:
        return standing_event(
            EventReason.CANNOT_FOLLOW,
            f"The job cannot be suspended, so it stays where it is: {observation.not_suspendable_reason}",
        )
    if isinstance(policy, NoPolicy):
        return _without_policy(policy)
    return None


def not_on_ladder_event(observation: Observation, policy: Policy) -> JobEvent:
    """Return the event for a job whose pods select none of the ladder's pools."""
    selected = f"the pool {observation.pool}" if observation.pool else "no pool, or several"
    pools = ", ".join(tier.name for tier in policy.tiers)
    return standing_event(
        EventReason.NOT_ON_LADDER,
        f"The job's pods select {selected}, and its ladder has {pools}: it is ignored. Create it with the selector "
        f'`{POOL}: {policy.tiers[0].name}`, or with the label `{FOLLOWS}: "{STAYS_VALUE}"` if it must stay where it is.',
    )


def _without_policy(policy: NoPolicy) -> JobEvent:
    if policy.problems:
        return standing_event(
            EventReason.NOT_ON_LADDER,
            f"The FallbackPolicy {LADDER} cannot be followed, so the job stays where it is: {' '.join(policy.problems)}",
        )
    return standing_event(
        EventReason.NOT_ON_LADDER,
        f'The job has the label `{FOLLOWS}: "{FOLLOWS_VALUE}"`, but its namespace has no FallbackPolicy {LADDER}: it stays '
        "where it is. Create one, or remove the label.",
    )


# Smaller differences are clock corrections by NTP; every timeout here is longer.
TOLERANCE: Final = timedelta(seconds=5)

# The end of a pause is the only recorded time that may lie in the future; no pause is longer than this.
LONGEST_PAUSE: Final = timedelta(minutes=20)


def shift_times(state: JobState, observation: Observation) -> JobState:
    """Return the state with all times of the controller's clock shifted by its jump, and none of them in the future.

    Without this a jump forward would end every wait at once, and a jump back would extend waits indefinitely. Times that
    came with a loss are from another clock and stay, or a loss would be counted twice.
    """
    jump = observation.clock_jump if abs(observation.clock_jump) >= TOLERANCE else NO_JUMP
    if jump == NO_JUMP and not _is_ahead(state, observation.now):
        return state
    latest = observation.now + TOLERANCE

    def shifted_time(time: datetime, ahead: timedelta = NO_JUMP) -> datetime:
        shifted = time + jump
        return shifted if shifted <= latest + ahead else observation.now + ahead

    def shifted_if_any(time: datetime | None, ahead: timedelta = NO_JUMP) -> datetime | None:
        return None if time is None else shifted_time(time, ahead)

    attempt, pace, ledger = state.failback, state.pace, state.ledger
    return replace(
        state,
        ledger=ledger and replace(ledger, counted_until=shifted_time(ledger.counted_until)),
        pace=pace
        and replace(pace, counts_from=None if pace.counts_from is None else pace.counts_from + jump),
        since=shifted_time(state.since),
        waiting_since=shifted_if_any(state.waiting_since),
        failures=tuple(replace(each, at=shifted_time(each.at)) for each in state.failures),
        outage_counted_at=shifted_if_any(state.outage_counted_at),
        resumed_at=shifted_if_any(state.resumed_at),
        suspended_at=shifted_if_any(state.suspended_at),
        resume_at=shifted_if_any(state.resume_at, LONGEST_PAUSE),
        last_failback_at=shifted_if_any(state.last_failback_at),
        failback=attempt
        and replace(
            attempt, since=shifted_time(attempt.since), requested_at=shifted_if_any(attempt.requested_at)
        ),
    )


def _is_ahead(state: JobState, now: datetime) -> bool:
    """Whether any time of the state lies further in the future than it may."""
    attempt = state.failback
    times = (
        state.since,
        state.waiting_since,
        state.outage_counted_at,
        state.resumed_at,
        state.suspended_at,
        state.last_failback_at,
        attempt and attempt.since,
        attempt and attempt.requested_at,
        state.ledger and state.ledger.counted_until,
        state.resume_at and state.resume_at - LONGEST_PAUSE,
    )
    latest = now + TOLERANCE
    return any(time > latest for time in times if time is not None)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The result of one reconciliation of a job.

    `state` holds once the actions are carried out (None: the controller does not manage the job and records nothing).
    `requeue_at` is when the job must be reconciled again although nothing has changed; None for never.
    """

    state: JobState | None
    actions: tuple[Action, ...] = ()
    events: tuple[JobEvent, ...] = ()
    requeue_at: datetime | None = None


def decide(
    state: JobState | UnreadableState | None, observation: Observation, policy: Policy | NoPolicy
) -> Decision:
    """Return the actions to carry out now. Total and pure: every state and observation has one result."""
    own = state if isinstance(state, JobState) and state.uid == observation.uid else None
    if own is None and isinstance(state, UnreadableState):
        own = _left_suspended(state, observation, policy)
    if own is not None:
        own = with_ledger(shift_times(own, observation), observation, policy)
    step = step_stop(own, observation) or (
        _first_reconcile(observation, policy) if own is None else _known(own, observation, policy)
    )
    if isinstance(state, UnreadableState) and step.state is not None:
        step = replace(step, events=(_unreadable_event(state, observation), *step.events))
    return _complete(state, step, observation, policy)


def _left_suspended(
    state: UnreadableState, observation: Observation, policy: Policy | NoPolicy
) -> JobState | None:
    """The state of a job that another version of the controller suspended, so that this one resumes it; else None."""
    pool = state.resume_on or observation.pool
    if state.resume_on is None or pool is None or not observation.suspended:
        return None
    rank = policy.rank_of(pool) if isinstance(policy, Policy) else None
    return replace(
        first_tier_visit(observation, pool, rank or 0),
        phase=Phase.SUSPENDING,
        waiting_since=None,
        purpose=Purpose.RESTART,
        suspended_at=observation.now,
    )


def _first_reconcile(observation: Observation, policy: Policy | NoPolicy) -> JobStep:
    if not observation.follows or observation.outcome is not None:
        return JobStep(state=None)
    blocked = blocking_event(observation, policy)
    if blocked is not None or not isinstance(policy, Policy):
        return JobStep(state=None, events=(blocked,) if blocked else ())
    rank = None if observation.pool is None else policy.rank_of(observation.pool)
    if observation.pool is None or rank is None:
        return JobStep(state=None, events=(not_on_ladder_event(observation, policy),))
    first = with_ledger(first_tier_visit(observation, observation.pool, rank), observation, policy)
    first = track_pace(first, observation, policy)
    if observation.suspended:
        return step_suspended_externally(first, observation)
    return step_refused(first, observation) or step_running(first, observation, policy)


def _known(state: JobState, observation: Observation, policy: Policy | NoPolicy) -> JobStep:
    # Of a job that is left alone restarts are not counted, so each look would take its last one for a new one.
    untracked = state
    if isinstance(policy, Policy):
        state = track_pace(state, seen_there(state, observation), policy)
    if observation.outcome is not None:
        return step_finished(state, observation, policy)
    if state.suspended_by_us:
        return step_suspended(state, observation, policy)
    blocked = blocking_event(observation, policy) if observation.follows else None
    if blocked is not None or not observation.follows or not isinstance(policy, Policy):
        left = replace(untracked, failback=None)
        return JobStep(state=left, events=(blocked,) if blocked else ())
    if observation.suspended:
        is_known = state.phase is Phase.STOPPED
        return JobStep(state=state) if is_known else step_suspended_externally(state, observation)
    if state.phase in {Phase.STOPPED, Phase.FINISHED}:
        # The job may have been suspended for hours: the visit's timeouts start again, its counts continue.
        resumed = replace(resume_tier_visit(state, observation), since=observation.now)
        state = with_expected_restart(resumed, state, observation)
    if observation.pool != state.pool:
        return _put_elsewhere(state, untracked, observation, policy)
    return step_refused(state, observation) or step_running(state, observation, policy)


def _put_elsewhere(state: JobState, untracked: JobState, observation: Observation, policy: Policy) -> JobStep:
    """Handle a job whose pods select another pool than at its suspension: it is now on that pool's tier."""
    rank = None if observation.pool is None else policy.rank_of(observation.pool)
    if observation.pool is None or rank is None:
        left = replace(untracked, failback=None)
        return JobStep(state=left, events=(not_on_ladder_event(observation, policy),))
    return step_running(
        new_tier_visit(replace(state, failback=None), observation, pool=observation.pool, rank=rank),
        observation,
        policy,
    )


def _unreadable_event(state: UnreadableState, observation: Observation) -> JobEvent:
    if not observation.suspended:
        suspended = ""
    elif state.resume_on is None:
        suspended = " The job stays suspended: set `suspend: false` to resume it."
    else:
        suspended = " The fallback controller suspended the job, and resumes it."
    return JobEvent(
        reason=EventReason.STATE_UNREADABLE,
        message=f"The state annotation cannot be read ({state.problem}): counting starts again.{suspended}",
        is_warning=True,
    )


def _is_ledger_due(before: JobState, observation: Observation) -> bool:
    return is_reached(ledger_due_at(before, observation), observation.now)


def _complete(
    before: JobState | UnreadableState | None,
    step: JobStep,
    observation: Observation,
    policy: Policy | NoPolicy,
) -> Decision:
    """Return the decision: the step, plus the state to write and the reservation to release."""
    actions = step.actions
    is_carried = any(isinstance(action, Suspend | Resume | Recreate) for action in actions)
    if step.state is not None and not is_carried:
        if isinstance(before, JobState) and step.state == before and not _is_ledger_due(before, observation):
            step = replace(step, state=before)
        else:
            actions = (WriteState(state=step.state), *actions)
    has_failback = step.state is not None and step.state.failback is not None
    if observation.reservation is not None and not has_failback:
        actions = (*actions, ReleaseReservation())
    is_ours = step.state is not None and (observation.follows or step.state.suspended_by_us)
    if is_ours and observation.dead_pods:
        actions = (*actions, ForceDelete(pods=observation.dead_pods))
    return Decision(
        state=step.state,
        actions=actions,
        events=(
            *step.events,
            *(observation.notices if step.state is not None else ()),
            *judgement_events(step.state, observation),
        ),
        requeue_at=None if step.state is None else next_requeue(step.state, observation, policy),
    )
