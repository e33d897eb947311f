"""A job's position on its ladder, and its visits of tiers.

Covers the tiers above and below although the ladder may be edited, and how a visit begins, pauses and resumes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from holdfast.fallback.policy.policy import Policy, PolicyTier
from holdfast.fallback.state_machine.observation import Observation, PoolStatus
from holdfast.fallback.state_machine.state import JobState, Phase
from holdfast.scheduling.frozen import replace

NO_WAIT = timedelta(0)


def first_tier_visit(observation: Observation, pool: str, rank: int) -> JobState:
    """Return the state of a job that is reconciled for the first time.

    Earlier restarts are not counted against the tier: it is unknown where they happened.
    """
    return JobState(
        uid=observation.uid,
        phase=Phase.WAITING,
        pool=pool,
        rank=rank,
        since=observation.now,
        waiting_since=observation.now,
        restarts=observation.restarts,
        disrupted_restarts=observation.disrupted_restarts,
    )


def new_tier_visit(
    state: JobState, observation: Observation, *, pool: str, rank: int, entered_by_failback: bool = False
) -> JobState:
    """Return the state of a job that enters a tier now: the tier's timeouts start, nothing is counted yet."""
    return replace(
        _resumed(state, observation),
        pool=pool,
        rank=rank,
        since=observation.now,
        waited=NO_WAIT,
        evictions=0,
        application_failures=0,
        unexplained=0,
        failures=(),
        outage_kind=None,
        outage_at=None,
        outage_counted_at=None,
        outage_pod_created_at=None,
        eviction_at=None,
        yields=0,
        head_restarts=0,
        moves=state.moves + 1,
        last_failback_at=None,
        entered_by_failback=entered_by_failback,
    )


def resume_tier_visit(state: JobState, observation: Observation) -> JobState:
    """Return the state of a job that resumes on the same tier: the tier's failures still count."""
    return _resumed(state, observation)


def with_expected_restart(after: JobState, before: JobState, observation: Observation) -> JobState:
    """Return the state of a job that its user stops or resumes: its operator may still restart it for the last outage.

    A move deletes the child Jobs whose failure the operator has not seen yet; a user who resumes a job does not.
    """
    is_due = before.restart_expected and observation.restarts == before.restarts
    return replace(after, restart_expected=is_due)


def at_rest(state: JobState, phase: Phase) -> JobState:
    """Return the state in a phase in which the job neither waits nor moves."""
    return replace(
        state,
        phase=phase,
        waiting_since=None,
        waited=NO_WAIT,
        purpose=None,
        suspended_at=None,
        resume_at=None,
        failback=None,
        refusal="",
    )


def _resumed(state: JobState, observation: Observation) -> JobState:
    return replace(
        state,
        phase=Phase.WAITING,
        waiting_since=observation.now,
        resumed_at=observation.now,
        restarts=observation.restarts,
        disrupted_restarts=observation.disrupted_restarts,
        restart_expected=False,
        losses_counted_until=latest_loss_at(state, observation),
        purpose=None,
        operator_status="",
        resume_at=None,
        resuspensions=0,
        refusal="",
    )


def latest_loss_at(state: JobState, observation: Observation) -> datetime | None:
    """When the latest of all known losses happened."""
    known = [loss.at for loss in observation.losses]
    if state.losses_counted_until is not None:
        known.append(state.losses_counted_until)
    return max(known, default=None)


@dataclass(frozen=True, kw_only=True)
class RankedTier:
    """A tier with its rank in the ladder."""

    rank: int
    tier: PolicyTier

    @property
    def pool(self) -> str:
        """The tier's pool."""
        return self.tier.pool


# A pool that is being replaced is missing for some seconds: no job leaves it or is given up for that.
MISSING_POOL_GRACE: Final = timedelta(minutes=1)


# A return to capacity that ends soon is worth it only if the job trains there for longer than its restarts take: one to get
# there, one to leave.
MOVES_TO_WORTH: Final = 4


def pool_exists(pool: str, observation: Observation) -> bool:
    """Whether the pool exists or is missing for a moment only, as far as is known."""
    status = observation.pools.get(pool, PoolStatus())
    until = pool_missing_deadline(pool, observation)
    return status.exists or (until is not None and observation.now < until)


def _takes_jobs(pool: str, observation: Observation) -> bool:
    """Whether a job may move to the pool: a pool that this process has never seen may be a mistake in the ladder."""
    status = observation.pools.get(pool, PoolStatus())
    return pool_exists(pool, observation) and (status.exists or status.was_seen)


def pool_missing_deadline(pool: str, observation: Observation) -> datetime | None:
    """When a missing pool counts as missing; None for a pool that exists, or that is not known to have existed."""
    status = observation.pools.get(pool, PoolStatus())
    if status.exists or status.missing_since is None:
        return None
    return status.missing_since + MISSING_POOL_GRACE


def is_available(tier: PolicyTier, observation: Observation) -> bool:
    """Whether jobs can start on a tier: its pool exists, as far as is known, has its capacity at this time, and is open."""
    return tier.is_open and _takes_jobs(tier.pool, observation) and tier.facts.window.is_open(observation.now)


def current_tier(state: JobState, policy: Policy) -> PolicyTier | None:
    """The tier the job is on; None if it was removed from the ladder."""
    rank = policy.rank_of(state.pool)
    return None if rank is None else policy.tiers[rank]


def tier_below(state: JobState, observation: Observation, policy: Policy) -> RankedTier | None:
    """The tier the job fails over to: the next one that is available; past the deadline the last one.

    A removed tier is followed by the tier that has its rank now, or by the last tier.
    """
    below = [
        tier
        for tier in ranked_tiers(policy)
        if tier.rank >= _first_below(state, policy) and is_available(tier.tier, observation)
    ]
    if not below:
        return None
    return below[-1] if is_past_deadline(observation, policy) else below[0]


def tiers_above(state: JobState, observation: Observation, policy: Policy) -> tuple[RankedTier, ...]:
    """The better tiers that are available, best first, and stay so for long enough that a move to them is worth its cost.

    Only tiers of the job's own cluster: capacity in another one cannot be reserved for it.
    """
    rank = policy.rank_of(state.pool)
    top = _first_below(state, policy) if rank is None else rank
    worth = policy.hold_timeout + MOVES_TO_WORTH * policy.restart_cost
    return tuple(
        tier
        for tier in ranked_tiers(policy)
        if tier.rank < top
        and not tier.tier.cluster
        and tier.tier.is_open
        and _takes_jobs(tier.pool, observation)
        and tier.tier.facts.window.is_open_for(worth, observation.now)
    )


def is_past_deadline(observation: Observation, policy: Policy) -> bool:
    """Whether the job has reached its ladder's `deadline`, after which only the last tier is used."""
    return policy.deadline is not None and observation.now >= observation.created + policy.deadline


def _first_below(state: JobState, policy: Policy) -> int:
    rank = policy.rank_of(state.pool)
    return min(state.rank, len(policy.tiers) - 1) if rank is None else rank + 1


def ranked_tiers(policy: Policy) -> list[RankedTier]:
    """The tiers with their ranks, best first."""
    return [RankedTier(rank=rank, tier=tier) for rank, tier in enumerate(policy.tiers)]
