"""One step of the state machine for each group of phases: running or waiting, suspended by the controller, finished."""

from __future__ import annotations

from typing import Final

from pulumi_holdfast.controller.jobs.actions import (
    DeleteChildren,
    DeletePlaceholders,
    EventReason,
    JobEvent,
    JobStep,
    Recreate,
    Resume,
)
from pulumi_holdfast.controller.jobs.observation import Cause, JobOutcome, Observation
from pulumi_holdfast.controller.jobs.state import JobState, OutageKind, Phase, Purpose
from pulumi_holdfast.controller.state_machine.away import (
    go_away,
    seen_there,
    slow_return_event,
    step_away,
    why_move,
)
from pulumi_holdfast.controller.state_machine.failback import (
    reserved_tier,
    step_failback,
    without_expired_failback,
)
from pulumi_holdfast.controller.state_machine.failover import (
    SLOW_SUSPENSION_AFTER,
    checkpoint_first,
    fail_back,
    fail_over,
    give_up,
    give_up_event,
    is_head_lost,
    moves_to_reservation,
    own_limit_event,
    pause,
    restart,
    suspend_again,
    yield_event,
)
from pulumi_holdfast.controller.state_machine.ledger import on_demand_price, spending_text
from pulumi_holdfast.controller.state_machine.outages import count_eviction, count_losses, counted_failures
from pulumi_holdfast.controller.state_machine.pacing import late_event, paced_policy
from pulumi_holdfast.controller.state_machine.refusal import accepted
from pulumi_holdfast.controller.state_machine.spending_limits import (
    PRICE_INTERVAL,
    is_closed_below,
    is_held,
    kept_from_lower_tiers,
    limited_policy,
    other_tier,
    spending_warnings,
)
from pulumi_holdfast.controller.state_machine.stops import MOVES, step_taken_over
from pulumi_holdfast.controller.state_machine.tier_visit import (
    at_rest,
    current_tier,
    is_available,
    is_reached,
    must_yield,
    new_tier_visit,
    pause_length,
    pods_missing_events,
    resume_tier_visit,
    slow_start_events,
    tier_below,
    track_wait,
)
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy

_CAUSES: Final = {
    OutageKind.EVICTION: "an eviction",
    OutageKind.APPLICATION: "a failure of the program",
    OutageKind.UNEXPLAINED: "a restart whose cause no replica observed",
}


def step_running(state: JobState, observation: Observation, policy: Policy) -> JobStep:
    """Take a job that runs or waits for nodes one step further: count losses, measure its wait, and fail over or fail back."""
    now = count_losses(state, observation, policy)
    said = _outage_event(state, now, policy)
    now, placed = track_wait(now, observation)
    ladder, policy = policy, paced_policy(now, observation, limited_policy(now, observation, policy))
    departure = _move(now, observation, policy)
    if departure is None:
        step = step_failback(now, observation, policy)
    elif observation.can_be_suspended:
        step = departure
    else:
        step = JobStep(
            state=without_expired_failback(now, observation, policy), events=(_move_blocked_event(),)
        )
    standing = (
        *_no_lower_tier_event(now, observation, policy),
        *pods_missing_events(now, observation),
        *slow_start_events(observation, policy),
        *late_event(now, observation, ladder),
        *spending_warnings(now, observation, ladder),
    )
    return replace(step, events=(*said, *placed, *step.events, *standing))


def _move(state: JobState, observation: Observation, policy: Policy) -> JobStep | None:
    """The move that the job must make; None if it stays."""
    over = own_limit_event(state, observation, policy)
    if over is not None:
        return give_up(state, observation, over)
    why = why_move(state, observation, policy)
    below = tier_below(state, observation, policy)
    if why is not None and below is not None:
        # The reserved capacity is better than any lower tier, and available already.
        above = reserved_tier(state, observation, policy)
        if above is not None:
            return fail_back(state, observation, policy, above)
        waits = checkpoint_first(state, observation, policy, why)
        return waits or fail_over(state, observation, policy, below, why)
    if why is not None and below is None:
        kept = kept_from_lower_tiers(state, observation, policy, why)
        if kept is not None:
            return kept
    if below is None:
        why_give_up = give_up_event(
            state, observation, policy, is_last=is_closed_below(state, observation, policy)
        )
        if why_give_up is not None:
            return give_up(state, observation, why_give_up)
    if is_head_lost(state, observation):
        return restart(state, observation)
    return (
        pause(state, observation, Purpose.YIELD, yield_event(state, observation))
        if must_yield(state, observation, current_tier(state, policy))
        else None
    )


def _outage_event(before: JobState, after: JobState, policy: Policy) -> tuple[JobEvent, ...]:
    spent = counted_failures(after, policy.failures)
    if spent <= counted_failures(before, policy.failures) or after.outage_kind is None:
        return ()
    tier = current_tier(after, policy)
    of = f" of {tier.max_failures}" if tier and tier.is_spent(10**9) else ""
    return (
        JobEvent(
            reason=EventReason.OUTAGE_COUNTED,
            message=f"Failures on {after.pool}: {spent}{of}; the last was {_CAUSES[after.outage_kind]}.",
        ),
    )


def _no_lower_tier_event(state: JobState, observation: Observation, policy: Policy) -> tuple[JobEvent, ...]:
    """Warn about a job that must leave its tier while no lower tier exists."""
    why = why_move(state, observation, policy)
    if why is None or tier_below(state, observation, policy) is not None:
        return ()
    follows = (
        "Cost limits exclude every lower tier, so the job stays: raise maxPrice or max-cost, or wait."
        if is_closed_below(state, observation, policy)
        else "No lower tier has a pool that exists, so the job stays: add one to the FallbackPolicy."
    )
    message = f"{why.message} {follows}"
    return (replace(why, message=message, is_warning=True, is_standing=True),)


def _move_blocked_event() -> JobEvent:
    return JobEvent(
        reason=EventReason.MOVE_BLOCKED,
        message="The job must move, but does not honor a suspension now: it moves as soon as it can be suspended.",
        is_standing=True,
    )


# A client that resumes a job three times during one move (a GitOps tool that writes `suspend: false`) never stops.
MAX_RESUSPENSIONS: Final = 3


def step_suspended(state: JobState, observation: Observation, policy: Policy | NoPolicy) -> JobStep:
    """Take a suspended job one step further. A move is completed even if the ladder is gone."""
    step = _step_suspended(state, observation, policy)
    is_moving = observation.follows and state.phase not in {Phase.GIVEN_UP, Phase.REFUSED}
    if not isinstance(policy, Policy) or not is_moving or observation.is_managed_by_kueue:
        return step
    seen = seen_there(state, observation)
    warnings = (*late_event(state, seen, policy), *spending_warnings(state, seen, policy))
    return replace(step, events=(*step.events, *warnings))


def _step_suspended(state: JobState, observation: Observation, policy: Policy | NoPolicy) -> JobStep:
    if not observation.suspended:
        # While a copy may run, the transfer suspends the job again.
        return (
            _resumed_externally(state, observation, policy)
            if observation.may_run_here
            else JobStep(state=state)
        )
    if observation.is_managed_by_kueue:
        return _handed_to_kueue(state)
    if state.phase is Phase.GIVEN_UP:
        return JobStep(state=state)
    if observation.is_deleted:
        return JobStep(state=state)
    if not observation.follows:
        return step_taken_over(state, observation)
    if state.phase is Phase.REFUSED:
        found = accepted(state, observation)
        if found is None or found.phase is Phase.REFUSED:
            return JobStep(state=found or state)
        state = found
    if state.phase is Phase.AWAY:
        return step_away(state, observation, policy) if isinstance(policy, Policy) else JobStep(state=state)
    if state.phase is Phase.PAUSED:
        return _paused(state, observation, policy)
    return _suspending(state, observation, policy)


def _suspending(state: JobState, observation: Observation, policy: Policy | NoPolicy) -> JobStep:
    state = _with_valid_target(state, observation, policy)
    if state.template_pool not in {observation.pool, ""}:
        return suspend_again(state, observation)
    slow = _slow_suspension_event(state, observation)
    if observation.pods_remaining > 0:
        return JobStep(state=state, events=slow)
    deletion = (DeleteChildren(),) if observation.outdated_children > 0 else ()
    if state.purpose is not Purpose.YIELD and _has_observed_suspension(state, observation):
        step = _resume(state, observation, policy, recreates_children=True)
        if any(isinstance(each, Resume) for each in step.actions):
            return replace(step, actions=(*deletion, *step.actions))
    if not observation.is_suspension_complete:
        return JobStep(state=state, events=slow)
    if deletion:
        return JobStep(state=state, actions=deletion, events=slow)
    if state.purpose is Purpose.YIELD:
        return JobStep(
            state=replace(
                state,
                phase=Phase.PAUSED,
                resume_at=observation.now + pause_length(state),
                yields=state.yields + 1,
            )
        )
    return _resume(state, observation, policy)


def _has_observed_suspension(state: JobState, observation: Observation) -> bool:
    """Whether a resumption need not wait until the operator has created suspended child Jobs: it creates them from the new template.

    The operator's status is written under the version of the job that it has observed. A status that has changed since the
    suspension shows that it has observed that update, and acts on no earlier one any more.
    """
    return observation.children_create_no_pods and state.operator_status not in {
        "",
        observation.operator_status,
    }


def _with_valid_target(state: JobState, observation: Observation, policy: Policy | NoPolicy) -> JobState:
    """Return the state with another target tier if the current target is no longer available."""
    if not isinstance(policy, Policy):
        return state
    if not moves_to_reservation(state):
        # Reserved nodes are bought already.
        policy = limited_policy(state, observation, policy)
    current = current_tier(state, policy)
    if current is not None and is_available(current, observation):
        return state
    tier = tier_below(state, observation, policy)
    is_limited = (current is not None and not current.is_open) or is_closed_below(state, observation, policy)
    if tier is None and is_limited:
        tier = other_tier(state, observation, policy)
    if tier is None and current is None:
        # No record leads to a pool of another ladder, not even to wait there.
        tier = policy.tiers[min(state.rank, len(policy.tiers) - 1)]
    if tier is None or tier.name == state.pool:
        return state
    return replace(state, pool=tier.name, rank=policy.rank(tier), purpose=Purpose.FAILOVER, failback=None)


def _resume(
    state: JobState, observation: Observation, policy: Policy | NoPolicy, *, recreates_children: bool = False
) -> JobStep:
    if not observation.may_run_here:
        return JobStep(state=state, events=slow_return_event(state, observation))
    is_bought = moves_to_reservation(state)
    if isinstance(policy, Policy) and not is_bought and is_held(state, observation, policy):
        return JobStep(state=replace(state, phase=Phase.PAUSED, resume_at=observation.now + PRICE_INTERVAL))
    if state.is_elsewhere:
        return go_away(state, observation)
    is_move = state.purpose in MOVES
    resumed = (
        new_tier_visit(state, observation, pool=state.pool, rank=state.rank, entered_by_failback=is_bought)
        if is_move
        else resume_tier_visit(state, observation)
    )
    report = JobEvent(
        reason=EventReason.MOVED if is_move else EventReason.RESUMED,
        message=f"No pod of the job is left; it is resumed on {state.pool}, from its latest checkpoint.",
    )
    resume = Resume(
        state=resumed,
        pool=resumed.pool,
        tolerate_reservation=is_bought,
        recreates_children=recreates_children,
    )
    return JobStep(
        state=resumed, actions=(resume, DeletePlaceholders()) if is_bought else (resume,), events=(report,)
    )


def _paused(state: JobState, observation: Observation, policy: Policy | NoPolicy) -> JobStep:
    if isinstance(policy, Policy) and not is_reached(state.resume_at, observation.now):
        return JobStep(state=state)
    is_elsewhere = state.template_pool not in {observation.pool, ""}
    if observation.pods_remaining > 0 or is_elsewhere or observation.outdated_children > 0:
        return JobStep(state=replace(state, phase=Phase.SUSPENDING, purpose=Purpose.RESTART, resume_at=None))
    valid = _with_valid_target(state, observation, policy)
    if valid.pool != state.pool:
        return JobStep(state=replace(valid, phase=Phase.SUSPENDING, resume_at=None))
    return _resume(state, observation, policy)


def _resumed_externally(state: JobState, observation: Observation, policy: Policy | NoPolicy) -> JobStep:
    """Handle a job that another client has resumed.

    In the middle of a move the job is suspended again, or the gangs of two tiers would write one checkpoint; but only a
    limited number of times, since a client that insists must find the job running in the end.
    """
    is_moving = state.phase is Phase.SUSPENDING and observation.follows
    if is_moving and state.resuspensions < MAX_RESUSPENSIONS:
        again = replace(_with_valid_target(state, observation, policy), resuspensions=state.resuspensions + 1)
        # One warning in a move, also for an owner that applies its manifest each second.
        said = () if state.resuspensions else (_suspended_again_event(again),)
        return replace(suspend_again(again, observation), events=said)
    pool = observation.pool or state.pool
    if state.phase is Phase.PAUSED:
        resumed = resume_tier_visit(state, observation)
    else:
        resumed = new_tier_visit(replace(state, failback=None), observation, pool=pool, rank=state.rank)
    return JobStep(
        state=resumed,
        events=(
            JobEvent(
                reason=EventReason.RESUMED_EXTERNALLY,
                message=f"Another client has resumed the job: it stays on {pool}, and counting starts again there.",
                is_warning=state.phase is Phase.SUSPENDING,
            ),
        ),
    )


def _handed_to_kueue(state: JobState) -> JobStep:
    """Handle a job that Kueue took over while it was suspended: from now on Kueue decides whether it runs."""
    return JobStep(
        state=replace(state, phase=Phase.STOPPED, purpose=None, resume_at=None, failback=None),
        events=(
            JobEvent(
                reason=EventReason.HANDED_OVER,
                message="Kueue manages the job now and resumes it when it is admitted; the fallback controller ignores it.",
                is_warning=True,
            ),
        ),
    )


def _suspended_again_event(state: JobState) -> JobEvent:
    return JobEvent(
        reason=EventReason.RESUMED_EXTERNALLY,
        message=(
            f"Another client resumed the job in the middle of its move to {state.pool}, when two of its gangs could have run "
            f"at once: it is suspended again, at most {MAX_RESUSPENSIONS} times in a move. Leave `suspend` out of "
            "manifests that are applied repeatedly."
        ),
        is_warning=True,
    )


def _slow_suspension_event(state: JobState, observation: Observation) -> tuple[JobEvent, ...]:
    if state.suspended_at is None or observation.now < state.suspended_at + SLOW_SUSPENSION_AFTER:
        return ()
    message = (
        f"{observation.pods_remaining} pods and {observation.outdated_children} child Jobs are left of the job since it was "
        "suspended; it is resumed once none is left. Look for finalizers, a long grace period or a node that "
        "does not answer."
        if observation.pods_remaining or observation.outdated_children
        else "No pod of the job is left, but its operator has not finished suspending it. Look at the job's Events, at quotas that "
        "keep JobSet from creating a child Job, and at whether the operator runs."
    )
    return (JobEvent(reason=EventReason.SLOW_SUSPENSION, message=message, is_warning=True, is_standing=True),)


# The limits for evictions apply long before; this limit ends failures that only look like evictions.
MAX_RECREATIONS: Final = 10


def step_finished(state: JobState, observation: Observation, policy: Policy | NoPolicy) -> JobStep:
    """Close the state of a job that has completed or failed, or recreate the job if it asks for that."""
    if state.phase is Phase.FINISHED:
        return JobStep(state=state)
    if isinstance(policy, Policy) and _must_recreate(state, observation):
        return _recreate(state, observation, policy)
    finished = at_rest(state, Phase.FINISHED)
    spent = "" if state.ledger is None else spending_text(state.ledger, on_demand_price(observation, policy))
    return JobStep(state=finished, events=(_finished_event(state, observation, spent),))


def _must_recreate(state: JobState, observation: Observation) -> bool:
    wanted = observation.can_be_recreated and observation.follows and not observation.is_managed_by_kueue
    has_failed = observation.outcome is JobOutcome.FAILED and observation.failure_cause not in {
        None,
        Cause.APPLICATION,
    }
    return wanted and has_failed and state.recreations < MAX_RECREATIONS


def _recreate(state: JobState, observation: Observation, policy: Policy) -> JobStep:
    hurt = state if state.suspended_by_us else count_eviction(state, observation.now, policy)
    tier = current_tier(hurt, policy)
    is_spent = tier is None or tier.is_spent(counted_failures(hurt, policy.failures))
    limited = limited_policy(hurt, observation, policy)
    below = tier_below(hurt, observation, limited) if is_spent else None
    fresh = (
        resume_tier_visit(hurt, observation)
        if below is None
        else new_tier_visit(hurt, observation, pool=below.name, rank=policy.rank(below))
    )
    # A recreated job takes over this record, and has an operator whose counters start at 0.
    recreated = replace(
        fresh,
        restarts=0,
        disrupted_restarts=0,
        failback=None,
        recreations=state.recreations + 1,
        suspended_at=None,
    )
    moved = JobEvent(
        reason=EventReason.MOVED,
        message=f"The job that failed is created again on {recreated.pool}, from its latest checkpoint.",
    )
    is_move = below is not None or (state.suspended_by_us and state.purpose in MOVES)
    return JobStep(
        state=recreated,
        actions=(Recreate(state=recreated, pool=recreated.pool),),
        events=(
            *((moved,) if is_move else ()),
            JobEvent(
                reason=EventReason.RECREATED,
                message=(
                    f"The job failed by an eviction, and a job that has ended cannot be resumed: it is recreated on "
                    f"{recreated.pool} ({recreated.recreations} of {MAX_RECREATIONS})."
                ),
                is_warning=True,
            ),
        ),
    )


def _finished_event(state: JobState, observation: Observation, spent: str) -> JobEvent:
    where = "in the middle of a move" if state.phase is Phase.SUSPENDING else f"on {state.pool}"
    if observation.outcome is JobOutcome.COMPLETED:
        costs = f" It ran {spent}." if spent else ""
        return JobEvent(reason=EventReason.COMPLETED, message=f"The job has completed, {where}.{costs}")
    return JobEvent(
        reason=EventReason.FAILED,
        message=(
            f"The job has failed, {where}, and a job that has failed cannot be resumed: create it again, and it continues "
            "from its latest checkpoint."
        ),
        is_warning=True,
    )
