"""The way back up: when it is tried, and how far it has come. The running job is not touched until its place is held."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holdfast.fallback.reservations.pod_shapes import gang_size, machines_needed
from holdfast.fallback.state_machine.actions import (
    AskCheckpoint,
    DropPlaceholders,
    Hold,
    Release,
    Step,
    TaintHeld,
)
from holdfast.fallback.state_machine.events import Report
from holdfast.fallback.state_machine.failover import up
from holdfast.fallback.state_machine.observation import PoolSeen
from holdfast.fallback.state_machine.state import Phase, ReturnAttempt, ReturnStage
from holdfast.fallback.state_machine.tier_visit import is_past_deadline, rungs_above
from holdfast.scheduling.quantities import format_duration

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.policy.policy import Policy
    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.fallback.state_machine.state import JobState
    from holdfast.fallback.state_machine.tier_visit import Rung

# A checkpoint that takes longer is written on SIGTERM, which every job gets after it.
CHECKPOINT_PATIENCE: Final = timedelta(minutes=2)

# 16 times as long, at most: the market that threw a job back out five times may be another one a day later.
_MOST_DOUBLINGS: Final = 4


def return_due(state: JobState, policy: Policy) -> datetime | None:
    """When a better tier is tried next: each return that did not last doubles the wait."""
    if policy.return_after is None:
        return None
    return (state.tried_return_at or state.since) + policy.return_after * 2 ** min(
        state.bounces, _MOST_DOUBLINGS
    )


def return_times(state: JobState, policy: Policy) -> tuple[datetime | None, ...]:
    """When what is decided here may become otherwise though nothing else changes."""
    if state.returning is None:
        return (return_due(state, policy) if state.phase is Phase.RUNNING else None,)
    asked_at = state.returning.asked_at
    return (
        state.returning.since + policy.hold_timeout,
        None if asked_at is None else asked_at + CHECKPOINT_PATIENCE,
    )


def held_rung(state: JobState, seen: Observation, policy: Policy) -> Rung | None:
    """The better tier whose capacity is wholly held for the job, tainted and all, if one is."""
    rung = _target(state, seen, policy)
    if rung is None or seen.held is None or seen.held.pool != rung.pool:
        return None
    is_whole = 0 < gang_size(seen.shapes) <= min(seen.held.placed, seen.held.tainted)
    return rung if is_whole else None


def returned(state: JobState, seen: Observation, policy: Policy) -> Step:
    """Take a job on a lower tier one step further on its way back up, or start it on it."""
    if state.returning is None:
        return _begun(state, seen, policy)
    if state.returning.stage is ReturnStage.MOVING:
        return _arrived(state, seen)
    rung = _target(state, seen, policy)
    if rung is None:
        return _ended(state, seen, f"{state.returning.pool} is no better tier of the ladder any more")
    if state.returning.stage is ReturnStage.ASKED:
        return _asked(state, seen, policy, rung)
    return _held(state, state.returning, seen, policy)


def without_late_return(state: JobState, seen: Observation, policy: Policy) -> JobState:
    """Return the state of a job that cannot move now, without a hold that nobody may pay for any longer."""
    is_late = state.returning is not None and seen.now >= state.returning.since + policy.hold_timeout
    return replace(state, returning=None, tried_return_at=seen.now) if is_late else state


def _begun(state: JobState, seen: Observation, policy: Policy) -> Step:
    due = return_due(state, policy)
    is_settled = state.phase is Phase.RUNNING and seen.can_be_suspended and seen.shapes
    if due is None or seen.now < due or not is_settled or _is_too_late(seen, policy):
        return Step(state=state)
    above = rungs_above(state, seen, policy)
    if not above:
        return Step(state=state)
    fitting = [rung for rung in above if _has_room(rung, seen)]
    if not fitting:
        return Step(
            state=replace(state, tried_return_at=seen.now),
            reports=(
                Report(
                    reason="NoRoomAbove",
                    message=f"No better tier may have as many nodes as the job needs; it stays on {state.pool}.",
                ),
            ),
        )
    return _holding(state, seen, policy, fitting[0])


def _holding(state: JobState, seen: Observation, policy: Policy, rung: Rung) -> Step:
    attempt = ReturnAttempt(pool=rung.pool, stage=ReturnStage.HOLDING, since=seen.now)
    # What is still held elsewhere goes first: two tiers' capacity is never paid for at once.
    action = Hold(pool=rung.pool, shapes=seen.shapes) if seen.held is None else Release()
    return Step(
        state=replace(state, returning=attempt),
        actions=(action,),
        reports=(
            Report(
                reason="ReturnTried",
                message=(
                    f"Capacity in {rung.pool} is asked for, for up to {format_duration(policy.hold_timeout)}; the job "
                    f"runs on in {state.pool} until all of it is held."
                ),
            ),
        ),
    )


def _held(state: JobState, attempt: ReturnAttempt, seen: Observation, policy: Policy) -> Step:
    """HOLDING and TAINTING: placeholders that are missing are made, then their nodes are tainted."""
    rung = held_rung(state, seen, policy)
    if rung is not None and seen.can_be_suspended:
        return _ready(state, attempt, seen, rung)
    if seen.now >= attempt.since + policy.hold_timeout:
        return _next_candidate(state, seen, policy)
    wanted = gang_size(seen.shapes)
    if seen.held is not None and seen.held.pool != attempt.pool:
        return Step(state=state, actions=(Release(),))
    if seen.held is not None and seen.held.placed >= wanted > 0:
        tainting = replace(state, returning=replace(attempt, stage=ReturnStage.TAINTING))
        return Step(state=tainting, actions=(TaintHeld(),))
    holding = replace(state, returning=replace(attempt, stage=ReturnStage.HOLDING))
    if seen.held is None or seen.held.pods < wanted:
        return Step(state=holding, actions=(Hold(pool=attempt.pool, shapes=seen.shapes),))
    return Step(state=holding)


def _ready(state: JobState, attempt: ReturnAttempt, seen: Observation, rung: Rung) -> Step:
    if not seen.listens:
        return up(state, seen, rung)
    asked = replace(attempt, stage=ReturnStage.ASKED, asked_at=seen.now)
    return Step(state=replace(state, returning=asked), actions=(AskCheckpoint(at=seen.now),))


def _asked(state: JobState, seen: Observation, policy: Policy, rung: Rung) -> Step:
    attempt = state.returning
    if attempt is None or held_rung(state, seen, policy) is None:
        # A node that was held is gone: there is nothing to move to, and no more time than there was.
        again = replace(attempt, stage=ReturnStage.HOLDING, asked_at=None) if attempt else None
        return Step(state=replace(state, returning=again))
    asked_at = attempt.asked_at or attempt.since
    if not seen.can_be_suspended and seen.now >= attempt.since + policy.hold_timeout:
        return _ended(state, seen, "it could not be suspended while the better tier's capacity was held")
    is_answered = seen.checkpointed_at is not None and seen.checkpointed_at >= asked_at
    if (is_answered or seen.now >= asked_at + CHECKPOINT_PATIENCE) and seen.can_be_suspended:
        return up(state, seen, rung)
    is_sent = seen.checkpoint_asked_at == asked_at
    return Step(state=state, actions=() if is_sent else (AskCheckpoint(at=asked_at),))


def _next_candidate(state: JobState, seen: Observation, policy: Policy) -> Step:
    """Try the next better tier after one whose capacity did not come; after the last of them, wait for the next time."""
    tried = policy.rank_of(state.returning.pool) if state.returning else None
    rest = [
        rung
        for rung in rungs_above(state, seen, policy)
        if tried is not None and rung.rank > tried and _has_room(rung, seen)
    ]
    if rest and not _is_too_late(seen, policy):
        return _holding(state, seen, policy, rest[0])
    return _ended(state, seen, "the capacity of the better tiers did not come in time")


def _ended(state: JobState, seen: Observation, why: str) -> Step:
    """End an attempt. What was held is released by whoever sees that nothing is being returned any more."""
    return Step(
        state=replace(state, returning=None, tried_return_at=seen.now),
        reports=(Report(reason="ReturnEnded", message=f"The job stays on {state.pool} undisturbed: {why}."),),
    )


def _arrived(state: JobState, seen: Observation) -> Step:
    """The job has been resumed on held nodes, which are its own until all of its pods are bound."""
    if state.phase is Phase.RUNNING and seen.is_placed:
        return Step(state=replace(state, returning=None))
    has_placeholders = seen.held is not None and seen.held.pods > 0
    return Step(state=state, actions=(DropPlaceholders(),) if has_placeholders else ())


def _target(state: JobState, seen: Observation, policy: Policy) -> Rung | None:
    if state.returning is None or policy.return_after is None:
        return None
    above = rungs_above(state, seen, policy)
    return next((rung for rung in above if rung.pool == state.returning.pool), None)


def _is_too_late(seen: Observation, policy: Policy) -> bool:
    return is_past_deadline(replace(seen, now=seen.now + policy.hold_timeout), policy)


def _has_room(rung: Rung, seen: Observation) -> bool:
    """Whether the pool's limits let it have the machines that the gang needs beside those in use."""
    known = seen.pools.get(rung.pool, PoolSeen())
    limits = [limit for limit in (rung.tier.facts.max_nodes, known.max_nodes) if limit is not None]
    return (
        not limits
        or machines_needed(seen.shapes, rung.tier.facts.machine) <= min(limits) - known.nodes_in_use
    )
