"""Failback: when a better tier is tried, the stages of an attempt, and the order in which jobs reserve capacity.

The running job is not changed until its capacity on the better tier is reserved. In each pool one reservation at a time is
incomplete, that of the job whose namespace has least of the pool, then of the oldest: two gangs that each reserve half of the free nodes would both reach their timeouts, again and again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from pulumi_holdfast.controller.jobs.actions import (
    CreatePlaceholders,
    DeletePlaceholders,
    EventReason,
    JobEvent,
    JobStep,
    ReleaseReservation,
    RequestCheckpoint,
    TaintReservedNodes,
)
from pulumi_holdfast.controller.jobs.observation import ContendingGang, Observation, PoolStatus
from pulumi_holdfast.controller.jobs.pod_shapes import gang_size, machines_needed, placement_problem
from pulumi_holdfast.controller.jobs.state import (
    FailbackAttempt,
    FailbackStage,
    JobState,
    Phase,
    UnreadableState,
)
from pulumi_holdfast.controller.state_machine.failover import CHECKPOINT_TIMEOUT, fail_back
from pulumi_holdfast.controller.state_machine.tier_visit import is_past_deadline, tiers_above
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.ladder import Policy, Tier
from pulumi_holdfast.ladder.quantities import format_duration

# A job that waits for its turn to reserve capacity looks this often, up to twice as long.
QUEUE_INTERVAL: Final = timedelta(minutes=1)

# At most 16 times as long: after five failbacks that did not last, the spot market may be different a day later.
_MAX_DOUBLINGS: Final = 4


def failback_due_at(state: JobState, policy: Policy) -> datetime | None:
    """When a better tier is tried next: each failback that did not last doubles the wait.

    Reserved capacity that has begun since the last attempt is tried at once: it is paid for, and nothing interrupts it.
    """
    if policy.return_after is None:
        return None
    last = state.last_failback_at or state.since
    rank = policy.rank_of(state.pool)
    begins = (tier.facts.window.begins for tier in policy.tiers[:rank])
    due = last + policy.return_after * 2 ** min(state.short_failbacks, _MAX_DOUBLINGS)
    return min([due, *(time for time in begins if time is not None and time > last)])


def failback_deadlines(
    state: JobState, observation: Observation, policy: Policy
) -> tuple[datetime | None, ...]:
    """The times at which this module's result may change although nothing else does."""
    if state.failback is None:
        due = failback_due_at(state, policy) if state.has_all_nodes else None
        is_queued = (
            due is not None
            and due <= observation.now
            and any(
                _waits_its_turn(each.name, observation) for each in tiers_above(state, observation, policy)
            )
        )
        return (observation.now + _queue_interval(state) if is_queued else due,)
    asked_at = state.failback.requested_at
    return (
        state.failback.since + policy.hold_timeout,
        None if asked_at is None else asked_at + CHECKPOINT_TIMEOUT,
    )


def reserved_tier(state: JobState, observation: Observation, policy: Policy) -> Tier | None:
    """The better tier whose capacity is completely reserved for the job, including taints; None if there is none."""
    tier_above = _target(state, observation, policy)
    if (
        tier_above is None
        or observation.reservation is None
        or observation.reservation.pool != tier_above.name
    ):
        return None
    is_whole = (
        0
        < gang_size(observation.shapes)
        <= min(observation.reservation.placed, observation.reservation.tainted)
    )
    return tier_above if is_whole else None


def step_failback(state: JobState, observation: Observation, policy: Policy) -> JobStep:
    """Start a failback for a job on a lower tier, or take the next step of the current one."""
    if state.failback is None:
        return _start(state, observation, policy)
    if state.failback.stage is FailbackStage.MOVING:
        return _finish_move(state, observation)
    tier_above = _target(state, observation, policy)
    if tier_above is None:
        return _end(state, observation, f"{state.failback.pool} is no longer an available better tier")
    if state.failback.stage is FailbackStage.CHECKPOINTING:
        return _await_checkpoint(state, observation, policy, tier_above)
    return _await_reservation(state, state.failback, observation, policy)


def without_expired_failback(state: JobState, observation: Observation, policy: Policy) -> JobState:
    """Return the state of a job that cannot move now, without a failback whose reservation has reached its timeout."""
    is_late = state.failback is not None and observation.now >= state.failback.since + policy.hold_timeout
    return replace(state, failback=None, last_failback_at=observation.now) if is_late else state


def _start(state: JobState, observation: Observation, policy: Policy) -> JobStep:
    due = failback_due_at(state, policy)
    is_settled = state.has_all_nodes and observation.can_be_suspended and observation.shapes
    if due is None or observation.now < due or not is_settled or _is_too_late(observation, policy):
        return JobStep(state=state)
    above = tiers_above(state, observation, policy)
    if not above:
        return JobStep(state=state)
    problem = placement_problem([shape.placement for shape in observation.shapes])
    if problem is not None:
        message = (
            f"No capacity can be reserved on a better tier, because {problem}; the job stays on {state.pool}."
        )
        event = JobEvent(reason=EventReason.CANNOT_FAIL_BACK, message=message)
        return JobStep(state=replace(state, last_failback_at=observation.now), events=(event,))
    fitting = [tier_above for tier_above in above if _has_capacity(tier_above, observation)]
    if fitting and all(_waits_its_turn(tier_above.name, observation) for tier_above in fitting):
        pools = ", ".join(tier_above.name for tier_above in fitting)
        waits = f"The job stays on {state.pool} for now: other jobs reserve capacity first in {pools}."
        return JobStep(
            state=state,
            events=(JobEvent(reason=EventReason.CANNOT_FAIL_BACK, message=waits, is_standing=True),),
        )
    if not fitting:
        return JobStep(
            state=replace(state, last_failback_at=observation.now),
            events=(
                JobEvent(
                    reason=EventReason.CANNOT_FAIL_BACK,
                    message=f"No better tier's limits allow as many nodes as the job needs; it stays on {state.pool}.",
                ),
            ),
        )
    return _reserve(
        state,
        observation,
        policy,
        next(tier_above for tier_above in fitting if not _waits_its_turn(tier_above.name, observation)),
    )


def _reserve(state: JobState, observation: Observation, policy: Policy, tier_above: Tier) -> JobStep:
    attempt = FailbackAttempt(pool=tier_above.name, stage=FailbackStage.RESERVING, since=observation.now)
    # Release other reservations first: two tiers' capacity is never paid for at once.
    action = (
        CreatePlaceholders(pool=tier_above.name, shapes=observation.shapes)
        if observation.reservation is None
        else ReleaseReservation()
    )
    return JobStep(
        state=replace(state, failback=attempt),
        actions=(action,),
        events=(
            JobEvent(
                reason=EventReason.FAILBACK_STARTED,
                message=(
                    f"Capacity in {tier_above.name} is requested for up to {format_duration(policy.hold_timeout)}; the job "
                    f"keeps running in {state.pool} until all of it is reserved."
                ),
            ),
        ),
    )


def _await_reservation(
    state: JobState, attempt: FailbackAttempt, observation: Observation, policy: Policy
) -> JobStep:
    """RESERVING and TAINTING: create the missing placeholders, then taint their nodes."""
    tier_above = reserved_tier(state, observation, policy)
    if tier_above is not None and observation.can_be_suspended:
        return _reservation_complete(state, attempt, observation, policy, tier_above)
    if observation.now >= attempt.since + policy.hold_timeout:
        return _try_next_tier(state, observation, policy)
    target = _target(state, observation, policy)
    if target is not None and _most_nodes(target, observation) < machines_needed(
        observation.shapes, target.facts.machine
    ):
        return _end(state, observation, f"{attempt.pool} may not have as many nodes as the job needs")
    if _waits_its_turn(attempt.pool, observation):
        return _yield_reservation(state, attempt)
    wanted = gang_size(observation.shapes)
    if observation.reservation is not None and observation.reservation.pool != attempt.pool:
        return JobStep(state=state, actions=(ReleaseReservation(),))
    if observation.reservation is not None and observation.reservation.placed >= wanted > 0:
        tainting = replace(state, failback=replace(attempt, stage=FailbackStage.TAINTING))
        return JobStep(state=tainting, actions=(TaintReservedNodes(),))
    holding = replace(state, failback=replace(attempt, stage=FailbackStage.RESERVING))
    if observation.reservation is None or observation.reservation.pods < wanted:
        return JobStep(
            state=holding, actions=(CreatePlaceholders(pool=attempt.pool, shapes=observation.shapes),)
        )
    return JobStep(state=holding)


def _reservation_complete(
    state: JobState, attempt: FailbackAttempt, observation: Observation, policy: Policy, tier_above: Tier
) -> JobStep:
    if not observation.checkpoints_on_request:
        return fail_back(state, observation, policy, tier_above)
    asked = replace(attempt, stage=FailbackStage.CHECKPOINTING, requested_at=observation.now)
    return JobStep(state=replace(state, failback=asked), actions=(RequestCheckpoint(at=observation.now),))


def _await_checkpoint(state: JobState, observation: Observation, policy: Policy, tier_above: Tier) -> JobStep:
    attempt = state.failback
    if attempt is None or reserved_tier(state, observation, policy) is None:
        # A reserved node is gone: there is nothing to move to, and the timeout stays the same.
        again = replace(attempt, stage=FailbackStage.RESERVING, requested_at=None) if attempt else None
        return JobStep(state=replace(state, failback=again))
    asked_at = attempt.requested_at or attempt.since
    if not observation.can_be_suspended and observation.now >= attempt.since + policy.hold_timeout:
        return _end(
            state, observation, "it could not be suspended while the better tier's capacity was reserved"
        )
    is_answered = observation.checkpointed_at is not None and observation.checkpointed_at >= asked_at
    if (is_answered or observation.now >= asked_at + CHECKPOINT_TIMEOUT) and observation.can_be_suspended:
        return fail_back(state, observation, policy, tier_above)
    is_sent = observation.checkpoint_requested_at == asked_at
    return JobStep(state=state, actions=() if is_sent else (RequestCheckpoint(at=asked_at),))


def _try_next_tier(state: JobState, observation: Observation, policy: Policy) -> JobStep:
    """Try the next better tier after one whose capacity did not come; after the last one, wait until the next failback."""
    tried = policy.rank_of(state.failback.pool) if state.failback else None
    rest = [
        tier_above
        for tier_above in tiers_above(state, observation, policy)
        if tried is not None
        and policy.rank(tier_above) > tried
        and _has_capacity(tier_above, observation)
        and not _waits_its_turn(tier_above.name, observation)
    ]
    if rest and not _is_too_late(observation, policy):
        return _reserve(state, observation, policy, rest[0])
    return _end(state, observation, "the better tiers had no capacity in time")


def _waits_its_turn(pool: str, observation: Observation) -> bool:
    """Whether the reservation of a job before this one is incomplete in a pool: two half reservations would help neither job."""
    other = observation.pools.get(pool, PoolStatus()).reserving
    return other is not None and other < observation.gang_in(pool)


def _queue_interval(state: JobState) -> timedelta:
    """How long a job waits before it tries to reserve again: spread by a hash, so that jobs do not all try at once."""
    digest = hashlib.sha256(state.uid.encode()).digest()
    return QUEUE_INTERVAL * (1 + int.from_bytes(digest[:4], "big") / 2**32)


def _yield_reservation(state: JobState, attempt: FailbackAttempt) -> JobStep:
    """Release the reservation in favor of a job before this one. The next attempt is due at once, after that job's."""
    return JobStep(
        state=replace(state, failback=None),
        events=(
            JobEvent(
                reason=EventReason.FAILBACK_ENDED,
                message=f"The job keeps running on {state.pool}: another job, which is older or whose namespace has fewer nodes there, "
                f"reserves capacity in {attempt.pool} first.",
            ),
        ),
    )


def _end(state: JobState, observation: Observation, why: str) -> JobStep:
    """End an attempt. `decide` releases what was reserved, since no failback is under way."""
    return JobStep(
        state=replace(state, failback=None, last_failback_at=observation.now),
        events=(
            JobEvent(
                reason=EventReason.FAILBACK_ENDED, message=f"The job keeps running on {state.pool}: {why}."
            ),
        ),
    )


def _finish_move(state: JobState, observation: Observation) -> JobStep:
    """Finish after the job was resumed on reserved nodes, which stay reserved until all of its pods are bound."""
    if state.phase is Phase.RUNNING and observation.is_placed:
        return JobStep(state=replace(state, failback=None))
    has_placeholders = observation.reservation is not None and observation.reservation.pods > 0
    return JobStep(state=state, actions=(DeletePlaceholders(),) if has_placeholders else ())


def _target(state: JobState, observation: Observation, policy: Policy) -> Tier | None:
    if state.failback is None or policy.return_after is None:
        return None
    above = tiers_above(state, observation, policy)
    return next((tier_above for tier_above in above if tier_above.name == state.failback.pool), None)


def _is_too_late(observation: Observation, policy: Policy) -> bool:
    return is_past_deadline(replace(observation, now=observation.now + policy.hold_timeout), policy)


def _has_capacity(tier_above: Tier, observation: Observation) -> bool:
    """Whether the pool's limits allow the machines that the gang needs, besides those in use."""
    in_use = observation.pools.get(tier_above.name, PoolStatus()).nodes_in_use
    needed = machines_needed(observation.shapes, tier_above.facts.machine)
    return needed <= _most_nodes(tier_above, observation) - in_use


def _most_nodes(tier: Tier, observation: Observation) -> float:
    known = observation.pools.get(tier.name, PoolStatus())
    limits = [limit for limit in (tier.facts.max_nodes, known.max_nodes) if limit is not None]
    return min(limits, default=math.inf)


K = TypeVar("K")


def reserving_pool(state: JobState | UnreadableState | None, observation: Observation) -> str | None:
    """Return the pool in which a job reserves capacity and does not have all of it yet; None if there is none."""
    if not isinstance(state, JobState) or state.failback is None or not observation.follows:
        return None
    if state.failback.stage not in {FailbackStage.RESERVING, FailbackStage.TAINTING}:
        return None
    held = observation.reservation
    is_whole = held is not None and held.pool == state.failback.pool
    is_whole = is_whole and held is not None and held.placed >= gang_size(observation.shapes)
    return None if is_whole else state.failback.pool


class ReservationQueue(Generic[K]):
    """The incomplete reservations of all jobs, by pool."""

    def __init__(self) -> None:
        self._reserving: dict[K, str] = {}
        self._gangs: dict[str, dict[K, ContendingGang]] = {}

    def update(
        self,
        key: K,
        state: JobState | UnreadableState | None,
        observation: Observation,
        share_of: Callable[[K, str], int] = lambda _, __: 0,
    ) -> Mapping[str, ContendingGang]:
        """Store a job's reservation, and return the first in turn of the other jobs that reserve capacity, by pool.

        `share_of` returns the share that a job's namespace has of a pool.
        """
        self.forget(key)
        pool = reserving_pool(state, observation)
        if pool is not None:
            self._reserving[key] = pool
            self._gangs.setdefault(pool, {})[key] = observation.by_age
        found: dict[str, ContendingGang] = {}
        for each, gangs in self._gangs.items():
            others = [
                replace(gang, share=share_of(other, each)) for other, gang in gangs.items() if other != key
            ]
            if others:
                found[each] = min(others)
        return found

    def forget(self, key: K) -> None:
        """Remove a deleted job."""
        pool = self._reserving.pop(key, None)
        if pool is not None:
            self._gangs[pool].pop(key, None)
