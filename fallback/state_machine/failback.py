"""The way back up: when it is tried, and how far it has come. The running job is not touched until its place is held."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holdfast.fallback.reservations.pod_shapes import gang_size, machines_needed
from holdfast.fallback.state_machine.actions import (
    CreatePlaceholders,
    DeletePlaceholders,
    ReleaseReservation,
    RequestCheckpoint,
    Step,
    TaintReservedNodes,
)
from holdfast.fallback.state_machine.events import EventReason, JobEvent
from holdfast.fallback.state_machine.failover import fail_back
from holdfast.fallback.state_machine.observation import PoolStatus
from holdfast.fallback.state_machine.state import FailbackAttempt, FailbackStage, Phase
from holdfast.fallback.state_machine.tier_visit import is_past_deadline, tiers_above
from holdfast.scheduling.quantities import format_duration

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.policy.policy import Policy
    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.fallback.state_machine.state import JobState
    from holdfast.fallback.state_machine.tier_visit import RankedTier

# A checkpoint that takes longer is written on SIGTERM, which every job gets after it.
CHECKPOINT_TIMEOUT: Final = timedelta(minutes=2)

# 16 times as long, at most: the market that threw a job back out five times may be another one a day later.
_MAX_DOUBLINGS: Final = 4


def failback_due_at(state: JobState, policy: Policy) -> datetime | None:
    """When a better tier is tried next: each return that did not last doubles the wait."""
    if policy.return_after is None:
        return None
    return (state.last_failback_at or state.since) + policy.return_after * 2 ** min(
        state.short_failbacks, _MAX_DOUBLINGS
    )


def failback_deadlines(state: JobState, policy: Policy) -> tuple[datetime | None, ...]:
    """When what is decided here may become otherwise though nothing else changes."""
    if state.failback is None:
        return (failback_due_at(state, policy) if state.phase is Phase.RUNNING else None,)
    asked_at = state.failback.requested_at
    return (
        state.failback.since + policy.hold_timeout,
        None if asked_at is None else asked_at + CHECKPOINT_TIMEOUT,
    )


def reserved_tier(state: JobState, observation: Observation, policy: Policy) -> RankedTier | None:
    """The better tier whose capacity is wholly held for the job, tainted and all, if one is."""
    rung = _target(state, observation, policy)
    if rung is None or observation.reservation is None or observation.reservation.pool != rung.pool:
        return None
    is_whole = (
        0
        < gang_size(observation.shapes)
        <= min(observation.reservation.placed, observation.reservation.tainted)
    )
    return rung if is_whole else None


def step_failback(state: JobState, observation: Observation, policy: Policy) -> Step:
    """Take a job on a lower tier one step further on its way back up, or start it on it."""
    if state.failback is None:
        return _start(state, observation, policy)
    if state.failback.stage is FailbackStage.MOVING:
        return _finish_move(state, observation)
    rung = _target(state, observation, policy)
    if rung is None:
        return _end(state, observation, f"{state.failback.pool} is no better tier of the ladder any more")
    if state.failback.stage is FailbackStage.CHECKPOINTING:
        return _await_checkpoint(state, observation, policy, rung)
    return _await_reservation(state, state.failback, observation, policy)


def without_expired_failback(state: JobState, observation: Observation, policy: Policy) -> JobState:
    """Return the state of a job that cannot move now, without a hold that nobody may pay for any longer."""
    is_late = state.failback is not None and observation.now >= state.failback.since + policy.hold_timeout
    return replace(state, failback=None, last_failback_at=observation.now) if is_late else state


def _start(state: JobState, observation: Observation, policy: Policy) -> Step:
    due = failback_due_at(state, policy)
    is_settled = state.phase is Phase.RUNNING and observation.can_be_suspended and observation.shapes
    if due is None or observation.now < due or not is_settled or _is_too_late(observation, policy):
        return Step(state=state)
    above = tiers_above(state, observation, policy)
    if not above:
        return Step(state=state)
    fitting = [rung for rung in above if _has_capacity(rung, observation)]
    if not fitting:
        return Step(
            state=replace(state, last_failback_at=observation.now),
            events=(
                JobEvent(
                    reason=EventReason.FAILBACK_NO_CAPACITY,
                    message=f"No better tier may have as many nodes as the job needs; it stays on {state.pool}.",
                ),
            ),
        )
    return _reserve(state, observation, policy, fitting[0])


def _reserve(state: JobState, observation: Observation, policy: Policy, rung: RankedTier) -> Step:
    attempt = FailbackAttempt(pool=rung.pool, stage=FailbackStage.RESERVING, since=observation.now)
    # What is still held elsewhere goes first: two tiers' capacity is never paid for at once.
    action = (
        CreatePlaceholders(pool=rung.pool, shapes=observation.shapes)
        if observation.reservation is None
        else ReleaseReservation()
    )
    return Step(
        state=replace(state, failback=attempt),
        actions=(action,),
        events=(
            JobEvent(
                reason=EventReason.FAILBACK_STARTED,
                message=(
                    f"Capacity in {rung.pool} is asked for, for up to {format_duration(policy.hold_timeout)}; the job "
                    f"runs on in {state.pool} until all of it is held."
                ),
            ),
        ),
    )


def _await_reservation(
    state: JobState, attempt: FailbackAttempt, observation: Observation, policy: Policy
) -> Step:
    """HOLDING and TAINTING: placeholders that are missing are made, then their nodes are tainted."""
    rung = reserved_tier(state, observation, policy)
    if rung is not None and observation.can_be_suspended:
        return _reservation_complete(state, attempt, observation, rung)
    if observation.now >= attempt.since + policy.hold_timeout:
        return _try_next_tier(state, observation, policy)
    wanted = gang_size(observation.shapes)
    if observation.reservation is not None and observation.reservation.pool != attempt.pool:
        return Step(state=state, actions=(ReleaseReservation(),))
    if observation.reservation is not None and observation.reservation.placed >= wanted > 0:
        tainting = replace(state, failback=replace(attempt, stage=FailbackStage.TAINTING))
        return Step(state=tainting, actions=(TaintReservedNodes(),))
    holding = replace(state, failback=replace(attempt, stage=FailbackStage.RESERVING))
    if observation.reservation is None or observation.reservation.pods < wanted:
        return Step(
            state=holding, actions=(CreatePlaceholders(pool=attempt.pool, shapes=observation.shapes),)
        )
    return Step(state=holding)


def _reservation_complete(
    state: JobState, attempt: FailbackAttempt, observation: Observation, rung: RankedTier
) -> Step:
    if not observation.checkpoints_on_request:
        return fail_back(state, observation, rung)
    asked = replace(attempt, stage=FailbackStage.CHECKPOINTING, requested_at=observation.now)
    return Step(state=replace(state, failback=asked), actions=(RequestCheckpoint(at=observation.now),))


def _await_checkpoint(state: JobState, observation: Observation, policy: Policy, rung: RankedTier) -> Step:
    attempt = state.failback
    if attempt is None or reserved_tier(state, observation, policy) is None:
        # A node that was held is gone: there is nothing to move to, and no more time than there was.
        again = replace(attempt, stage=FailbackStage.RESERVING, requested_at=None) if attempt else None
        return Step(state=replace(state, failback=again))
    asked_at = attempt.requested_at or attempt.since
    if not observation.can_be_suspended and observation.now >= attempt.since + policy.hold_timeout:
        return _end(state, observation, "it could not be suspended while the better tier's capacity was held")
    is_answered = observation.checkpointed_at is not None and observation.checkpointed_at >= asked_at
    if (is_answered or observation.now >= asked_at + CHECKPOINT_TIMEOUT) and observation.can_be_suspended:
        return fail_back(state, observation, rung)
    is_sent = observation.checkpoint_requested_at == asked_at
    return Step(state=state, actions=() if is_sent else (RequestCheckpoint(at=asked_at),))


def _try_next_tier(state: JobState, observation: Observation, policy: Policy) -> Step:
    """Try the next better tier after one whose capacity did not come; after the last of them, wait for the next time."""
    tried = policy.rank_of(state.failback.pool) if state.failback else None
    rest = [
        rung
        for rung in tiers_above(state, observation, policy)
        if tried is not None and rung.rank > tried and _has_capacity(rung, observation)
    ]
    if rest and not _is_too_late(observation, policy):
        return _reserve(state, observation, policy, rest[0])
    return _end(state, observation, "the capacity of the better tiers did not come in time")


def _end(state: JobState, observation: Observation, why: str) -> Step:
    """End an attempt. What was held is released by whoever sees that nothing is being returned any more."""
    return Step(
        state=replace(state, failback=None, last_failback_at=observation.now),
        events=(
            JobEvent(
                reason=EventReason.FAILBACK_ENDED,
                message=f"The job stays on {state.pool} undisturbed: {why}.",
            ),
        ),
    )


def _finish_move(state: JobState, observation: Observation) -> Step:
    """The job has been resumed on held nodes, which are its own until all of its pods are bound."""
    if state.phase is Phase.RUNNING and observation.is_placed:
        return Step(state=replace(state, failback=None))
    has_placeholders = observation.reservation is not None and observation.reservation.pods > 0
    return Step(state=state, actions=(DeletePlaceholders(),) if has_placeholders else ())


def _target(state: JobState, observation: Observation, policy: Policy) -> RankedTier | None:
    if state.failback is None or policy.return_after is None:
        return None
    above = tiers_above(state, observation, policy)
    return next((rung for rung in above if rung.pool == state.failback.pool), None)


def _is_too_late(observation: Observation, policy: Policy) -> bool:
    return is_past_deadline(replace(observation, now=observation.now + policy.hold_timeout), policy)


def _has_capacity(rung: RankedTier, observation: Observation) -> bool:
    """Whether the pool's limits let it have the machines that the gang needs beside those in use."""
    known = observation.pools.get(rung.pool, PoolStatus())
    limits = [limit for limit in (rung.tier.facts.max_nodes, known.max_nodes) if limit is not None]
    return (
        not limits
        or machines_needed(observation.shapes, rung.tier.facts.machine) <= min(limits) - known.nodes_in_use
    )
