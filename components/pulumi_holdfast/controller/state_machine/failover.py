"""Failover: whether a job must leave its tier or be given up, and the update that suspends it for its next tier."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from pulumi_holdfast.controller.jobs.actions import EventReason, JobEvent, JobStep, RequestCheckpoint, Suspend
from pulumi_holdfast.controller.jobs.observation import Observation
from pulumi_holdfast.controller.jobs.state import FailbackStage, JobState, Phase, Purpose
from pulumi_holdfast.controller.state_machine.outages import counted_failures
from pulumi_holdfast.controller.state_machine.tier_visit import (
    MISSING_POOL_GRACE,
    NO_WAIT,
    current_tier,
    is_reached,
    pool_exists,
    pool_missing_deadline,
    tier_below,
    time_waited,
    wait_ends,
)
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.ladder import UNLIMITED, Failures, Policy, Tier
from pulumi_holdfast.ladder.quantities import format_duration
from pulumi_holdfast.ladder.windows import format_time

# A checkpoint that takes longer is written on SIGTERM, which every job receives after this time.
CHECKPOINT_TIMEOUT: Final = timedelta(minutes=2)

_WITHOUT_NODES: Final = frozenset({EventReason.NO_CAPACITY, EventReason.PRICE_ABOVE_MAX})

# A head that recovers by itself does so within this time; after it the operator waits for it forever.
HEAD_TIMEOUT: Final = timedelta(minutes=2)

# Longer than any notice and most grace periods: pods that still terminate after this time are blocked.
SLOW_SUSPENSION_AFTER: Final = timedelta(minutes=10)

# A head that is lost this often on one tier has no reliable capacity there.
MAX_HEAD_RESTARTS: Final = 5


def failover_event(state: JobState, observation: Observation, policy: Policy) -> JobEvent | None:
    """Return why the job must fail over to the next tier; None if it must not."""
    tier = current_tier(state, policy)
    if tier is None:
        return _tier_removed_event(state, observation)
    if not pool_exists(state.pool, observation) and is_reached(
        missing_pool_deadline(state, observation), observation.now
    ):
        return JobEvent(
            reason=EventReason.TIER_UNAVAILABLE,
            message=f"The pool {state.pool} does not exist, so the job does not wait for its capacity.",
            is_warning=True,
        )
    closed = _closed_event(tier, observation)
    if closed is not None:
        return closed
    spent = counted_failures(state, policy.failures)
    if tier.is_spent(spent):
        return JobEvent(
            reason=EventReason.MAX_FAILURES_REACHED,
            message=f"maxFailures {tier.max_failures} is reached on {state.pool} (failures: {spent}).",
        )
    if tier.procurement_timeout and is_reached(
        wait_ends(state, observation, tier.procurement_timeout), observation.now
    ):
        return JobEvent(
            reason=EventReason.NO_CAPACITY,
            message=(
                f"{observation.pods_placed} of {observation.pods_expected} pods have nodes in {state.pool} after "
                f"procurementTimeout {format_duration(tier.procurement_timeout)}."
            ),
        )
    if _head_restarts_are_spent(state, observation):
        return JobEvent(
            reason=EventReason.HEAD_LOST,
            message=f"The Ray head was lost or not ready on {state.pool} again, after {MAX_HEAD_RESTARTS} restarts.",
            is_warning=True,
        )
    return None


def _closed_event(tier: Tier, observation: Observation) -> JobEvent | None:
    """Return why a job must leave a tier at this time: its reserved capacity ends soon, or has not begun."""
    window = tier.facts.window
    if window.ends is not None and window.is_over(observation.now):
        return JobEvent(
            reason=EventReason.CAPACITY_ENDS,
            message=f"The reserved capacity of {tier.name} can be used until {format_time(window.ends)} only.",
        )
    if window.begins is not None and not window.has_begun(observation.now):
        return JobEvent(
            reason=EventReason.TIER_UNAVAILABLE,
            message=f"The reserved capacity of {tier.name} begins at {format_time(window.begins)}, so the job does not wait for it.",
        )
    return None


def checkpoint_first(
    state: JobState, observation: Observation, policy: Policy, why: JobEvent
) -> JobStep | None:
    """Return the step that requests a checkpoint before a job leaves capacity that ends; None if it can leave now."""
    tier = current_tier(state, policy)
    ends = None if tier is None else tier.facts.window.ends
    asks = observation.checkpoints_on_request and observation.is_placed
    if why.reason is not EventReason.CAPACITY_ENDS or ends is None or not asks:
        return None
    asked_at = observation.checkpoint_requested_at
    if asked_at is None or asked_at < ends:
        return JobStep(state=state, actions=(RequestCheckpoint(at=observation.now),))
    is_answered = observation.checkpointed_at is not None and observation.checkpointed_at >= asked_at
    return None if is_answered or observation.now >= asked_at + CHECKPOINT_TIMEOUT else JobStep(state=state)


def give_up_event(
    state: JobState, observation: Observation, policy: Policy, *, is_last: bool = False
) -> JobEvent | None:
    """Return why the job must be given up on the last tier; None if it must not.

    A tier whose lower tiers are missing is not the last one: its job waits for them. `is_last`: it counts as the last one.
    """
    if not is_last and policy.rank_of(state.pool) != len(policy.tiers) - 1:
        return None
    budget = _application_budget(policy)
    is_lowest = policy.rank_of(state.pool) == len(policy.tiers) - 1
    where = (
        f"the last tier, {state.pool}"
        if is_lowest
        else f"{state.pool}, whose lower tiers cost limits exclude"
    )
    if budget is not None and state.application_failures >= budget:
        return _given_up_event(
            f"its program has failed {state.application_failures} times on {where} "
            f"(applicationFailures: {policy.application_failures})"
        )
    if policy.give_up_after and is_reached(
        wait_ends(state, observation, policy.give_up_after), observation.now
    ):
        return _given_up_event(
            f"no capacity was available for {format_duration(policy.give_up_after)} on {where} (giveUpAfter)"
        )
    if _head_restarts_are_spent(state, observation):
        return _given_up_event(
            f"its Ray head is lost or not ready after {MAX_HEAD_RESTARTS} restarts on {state.pool}"
        )
    return None


def own_limit_event(state: JobState, observation: Observation, policy: Policy) -> JobEvent | None:
    """Return why a job must be given up on any tier: its program has failed there more often than its author allows."""
    limit = observation.own_limit
    if limit is None or policy.failures is Failures.EVICTIONS or state.application_failures <= limit:
        return None
    return _given_up_event(
        f"its program has failed {state.application_failures} times on {state.pool}, and the job itself allows {limit} restarts"
    )


def is_head_lost(state: JobState, observation: Observation) -> bool:
    """Whether a RayJob's head has been unready for so long that only a restart helps."""
    return is_reached(head_deadline(state, observation), observation.now)


def head_deadline(state: JobState, observation: Observation) -> datetime | None:
    """When an unready head counts as lost; time before the last resumption belongs to an earlier head."""
    if observation.head_unready_since is None:
        return None
    return (
        max(observation.head_unready_since, state.resumed_at or observation.head_unready_since) + HEAD_TIMEOUT
    )


def missing_pool_deadline(state: JobState, observation: Observation) -> datetime | None:
    """When a job stops waiting for a pool that does not exist."""
    return wait_ends(state, observation, MISSING_POOL_GRACE)


def failover_deadlines(
    state: JobState, observation: Observation, policy: Policy
) -> tuple[datetime | None, ...]:
    """The times at which this module's result may change although nothing else does."""
    tier: Tier | None = current_tier(state, policy)
    is_last = tier_below(state, observation, policy) is None
    asked_at = observation.checkpoint_requested_at
    return (
        *(each.facts.window.changes_at(observation.now) for each in policy.tiers),
        None if asked_at is None else asked_at + CHECKPOINT_TIMEOUT,
        *(pool_missing_deadline(pool, observation) for pool in sorted(observation.pools)),
        missing_pool_deadline(state, observation) if not pool_exists(state.pool, observation) else None,
        wait_ends(state, observation, tier.procurement_timeout) if tier else None,
        wait_ends(state, observation, policy.give_up_after) if is_last else None,
        head_deadline(state, observation),
    )


def _tier_removed_event(state: JobState, observation: Observation) -> JobEvent | None:
    if observation.is_placed:
        return None
    return JobEvent(
        reason=EventReason.TIER_UNAVAILABLE,
        message=f"{state.pool} is no longer a tier of the ladder, so a job does not wait for its capacity.",
    )


def _head_restarts_are_spent(state: JobState, observation: Observation) -> bool:
    return state.head_restarts >= MAX_HEAD_RESTARTS and is_head_lost(state, observation)


def _application_budget(policy: Policy) -> int | None:
    """How many failures of the program end the job on the last tier; 0 means 1, as for maxFailures; None means no limit."""
    if policy.failures is Failures.EVICTIONS or policy.application_failures == UNLIMITED:
        return None
    return max(1, policy.application_failures)


def _given_up_event(why: str) -> JobEvent:
    return JobEvent(
        reason=EventReason.GIVEN_UP,
        message=(
            f"The job is suspended permanently, since {why}. It has no pods and causes no cost. Fix the cause, then set "
            "`suspend: false` in its spec to try again."
        ),
        is_warning=True,
    )


def fail_over(
    state: JobState, observation: Observation, policy: Policy, tier: Tier, why: JobEvent
) -> JobStep:
    """Suspend the job to resume it on a lower tier."""
    moving = replace(
        _suspending(state, observation, Purpose.FAILOVER),
        pool=tier.name,
        rank=policy.rank(tier),
        failback=None,
        short_failbacks=state.short_failbacks
        if why.reason is EventReason.CAPACITY_ENDS
        else _short_failbacks(state, observation, policy),
    )
    return _suspended(moving, replace(why, message=f"{why.message} The job moves on to {tier.name}."))


def fail_back(state: JobState, observation: Observation, policy: Policy, tier: Tier) -> JobStep:
    """Suspend the job to resume it on the better tier whose capacity is reserved for it."""
    attempt = replace(state.failback, stage=FailbackStage.MOVING) if state.failback else None
    moving = replace(
        _suspending(state, observation, Purpose.FAILBACK),
        pool=tier.name,
        rank=policy.rank(tier),
        failback=attempt,
    )
    return _suspended(
        moving,
        JobEvent(
            reason=EventReason.FAILBACK_MOVING,
            message=f"Every node that the job needs in {tier.name} is reserved for it: it moves there from {state.pool}.",
        ),
    )


def pause(state: JobState, observation: Observation, purpose: Purpose, why: JobEvent) -> JobStep:
    """Suspend a job that stays on its tier: to yield its nodes, or until cost limits allow the tier."""
    moving = replace(
        _suspending(state, observation, purpose), waited=time_waited(state, observation), failback=None
    )
    return _suspended(moving, why)


def yield_event(state: JobState, observation: Observation) -> JobEvent:
    """Return why a half-placed gang is suspended in favor of another gang."""
    return JobEvent(
        reason=EventReason.YIELDED,
        message=(
            f"{observation.pods_placed} of {observation.pods_expected} pods have nodes in {state.pool}, which another job's gang "
            "also waits for: the job whose namespace has more nodes there, or else the younger job, yields its nodes for a while."
        ),
    )


def restart(state: JobState, observation: Observation) -> JobStep:
    """Suspend a job whose head is lost, to resume it on the same tier."""
    moving = replace(
        _suspending(state, observation, Purpose.RESTART),
        waited=NO_WAIT,
        failback=None,
        head_restarts=state.head_restarts + 1,
    )
    return _suspended(
        moving,
        JobEvent(
            reason=EventReason.HEAD_LOST,
            message="The Ray head was lost or not ready for too long: the job restarts on the same tier.",
            is_warning=True,
        ),
    )


def give_up(state: JobState, observation: Observation, why: JobEvent) -> JobStep:
    """Suspend the job permanently."""
    ended = replace(
        state,
        phase=Phase.GIVEN_UP,
        waiting_since=None,
        waited=NO_WAIT,
        suspended_at=observation.now,
        failback=None,
    )
    return JobStep(state=ended, actions=(Suspend(state=ended, pool=ended.template_pool),), events=(why,))


def suspend_again(state: JobState, observation: Observation) -> JobStep:
    """Return the step that suspends a job in the middle of its move, with a template that selects the move's target."""
    again = replace(state, operator_status=observation.operator_status)
    return JobStep(state=again, actions=(_suspension(again),))


def _suspension(state: JobState) -> Suspend:
    """Return the update that suspends a job, with a template that selects the tier it will be resumed on.

    A copy has a template of its own, so a job that goes to another cluster keeps its template.
    """
    return Suspend(state=state, pool=state.template_pool, tolerate_reservation=moves_to_reservation(state))


def moves_to_reservation(state: JobState) -> bool:
    """Whether the job is moving onto nodes that are reserved for it."""
    return state.failback is not None and state.failback.stage is FailbackStage.MOVING


def _suspending(state: JobState, observation: Observation, purpose: Purpose) -> JobState:
    return replace(
        state,
        phase=Phase.SUSPENDING,
        purpose=purpose,
        suspended_at=observation.now,
        operator_status=observation.operator_status,
        waiting_since=None,
        resume_at=None,
        resuspensions=0,
    )


def _suspended(state: JobState, report: JobEvent) -> JobStep:
    """Return the step that suspends a job; for lack of nodes only if the API server confirms it, because the cache may be behind."""
    suspend = replace(_suspension(state), only_without_nodes=report.reason in _WITHOUT_NODES)
    return JobStep(state=state, actions=(suspend,), events=(report,))


def _short_failbacks(state: JobState, observation: Observation, policy: Policy) -> int:
    """How many failbacks in a row did not last: those whose tier visit was shorter than `returnAfter`."""
    if not state.entered_by_failback or policy.return_after is None:
        return state.short_failbacks
    return state.short_failbacks + 1 if observation.now - state.since < policy.return_after else 0
