"""Where on its ladder a job stands, and which tiers lie below and above, though the ladder is edited meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.fallback.state_machine.observation import PoolSeen

if TYPE_CHECKING:
    from holdfast.fallback.policy.policy import Policy, PolicyTier
    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.fallback.state_machine.state import JobState


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
