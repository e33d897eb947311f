"""A job's stay on a tier: how it begins, how it is broken off and taken up again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from holdfast.fallback.state_machine.observation import PoolSeen
from holdfast.fallback.state_machine.state import JobState, Phase

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.policy.policy import Policy, PolicyTier
    from holdfast.fallback.state_machine.observation import Observation


NOTHING_WAITED = timedelta(0)


def first_stay(seen: Observation, pool: str, rank: int) -> JobState:
    """Return the state of a job that is looked at for the first time.

    Restarts from before are not held against the tier: nobody knows where they happened.
    """
    return JobState(
        uid=seen.uid,
        phase=Phase.WAITING,
        pool=pool,
        rank=rank,
        since=seen.now,
        waiting_since=seen.now,
        restarts=seen.restarts,
        disrupted_restarts=seen.disrupted_restarts,
    )


def new_stay(state: JobState, seen: Observation, *, pool: str, rank: int, returned: bool = False) -> JobState:
    """Return the state of a job that enters a tier now: the tier's clock starts, nothing is counted yet."""
    return replace(
        _afresh(state, seen),
        pool=pool,
        rank=rank,
        since=seen.now,
        waited=NOTHING_WAITED,
        evictions=0,
        application_failures=0,
        unexplained=0,
        outage_kind=None,
        outage_at=None,
        outage_seen_at=None,
        outage_born=None,
        eviction_at=None,
        yields=0,
        head_restarts=0,
        moves=state.moves + 1,
        tried_return_at=None,
        returned=returned,
    )


def same_stay(state: JobState, seen: Observation) -> JobState:
    """Return the state of a job that goes on where it was: what was counted against the tier stays counted."""
    return _afresh(state, seen)


def _afresh(state: JobState, seen: Observation) -> JobState:
    return replace(
        state,
        phase=Phase.WAITING,
        waiting_since=seen.now,
        resumed_at=seen.now,
        restarts=seen.restarts,
        disrupted_restarts=seen.disrupted_restarts,
        restart_due=False,
        losses_until=latest_loss(state, seen),
        purpose=None,
        resume_at=None,
        reasserted=0,
    )


def latest_loss(state: JobState, seen: Observation) -> datetime | None:
    """When the last of all losses known so far was."""
    known = [loss.at for loss in seen.losses]
    if state.losses_until is not None:
        known.append(state.losses_until)
    return max(known, default=None)


@dataclass(frozen=True, kw_only=True)
class Rung:
    """A tier with its place in the ladder."""

    rank: int
    tier: PolicyTier

    @property
    def pool(self) -> str:
        """The tier's pool."""
        return self.tier.pool


def is_there(pool: str, seen: Observation) -> bool:
    """Whether the pool exists, as far as is known."""
    return seen.pools.get(pool, PoolSeen()).is_there


def current_tier(state: JobState, policy: Policy) -> PolicyTier | None:
    """The tier the job is on; None when it has been taken out of the ladder since."""
    rank = policy.rank_of(state.pool)
    return None if rank is None else policy.tiers[rank]


def rung_below(state: JobState, seen: Observation, policy: Policy) -> Rung | None:
    """Where the job goes on to: the next tier whose pool is there; past the deadline the last one.

    A tier that was taken out is followed by what stands in its place, or by the last tier.
    """
    below = [
        rung
        for rung in _rungs(policy)
        if rung.rank >= _first_below(state, policy) and is_there(rung.pool, seen)
    ]
    if not below:
        return None
    return below[-1] if is_past_deadline(seen, policy) else below[0]


def rungs_above(state: JobState, seen: Observation, policy: Policy) -> tuple[Rung, ...]:
    """The better tiers whose pools are there, best first."""
    rank = policy.rank_of(state.pool)
    top = _first_below(state, policy) if rank is None else rank
    return tuple(rung for rung in _rungs(policy) if rung.rank < top and is_there(rung.pool, seen))


def is_past_deadline(seen: Observation, policy: Policy) -> bool:
    """Whether the job has taken longer than its ladder lets it try cheaper capacity."""
    return policy.deadline is not None and seen.now >= seen.created + policy.deadline


def _first_below(state: JobState, policy: Policy) -> int:
    rank = policy.rank_of(state.pool)
    return min(state.rank, len(policy.tiers) - 1) if rank is None else rank + 1


def _rungs(policy: Policy) -> list[Rung]:
    return [Rung(rank=rank, tier=tier) for rank, tier in enumerate(policy.tiers)]
