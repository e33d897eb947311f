"""A simulated market of tiers: moves a job along its ladder, and says where it stays."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pulumi_holdfast.controller.jobs.observation import Cause
from pulumi_holdfast.ladder.ladder import UNLIMITED, Policy, Tier
from pulumi_holdfast.ladder.reachability.walk import Outcome as WalkOutcome
from tests.support.builders.job_states import HOUR, MINUTE, PODS
from tests.support.fakes.job_world import JobWorld

#: More losses than any drawn tier allows; after this many, no capacity comes back.
_LOSSES: Final = 8
#: Reconciliations without a move after which no move follows.
_QUIET: Final = 25
_TIMEOUT: Final = 15 * MINUTE


@dataclass(frozen=True, kw_only=True)
class MarketTier:
    """A tier of the simulated market: `takes_the_job` says whether its pool can have the gang's nodes at all."""

    takes_the_job: bool
    is_on_demand: bool
    max_failures: int | None = None
    has_timeout: bool = False


def end_of(tiers: Sequence[MarketTier]) -> WalkOutcome:
    """Move a job along its ladder, and return where it stays."""
    pools = {f"tier-{number}": played for number, played in enumerate(tiers)}
    world = JobWorld(policy=Policy(tiers=tuple(_tier(*each) for each in pools.items())), pool="tier-0")
    world.pods_pool = world.pool
    losses, since = 0, 0
    while since < _QUIET:
        before = world.pool
        _run_controller(world)
        played = pools[world.pool]
        losses, since = (0, 0) if world.pool != before else (losses, since + 1)
        if played.takes_the_job and losses < _LOSSES:
            world.capacity_comes(PODS)
            world.reconcile()
            if played.is_on_demand:
                return WalkOutcome.ARRIVES
            losses += _takes_a_node(world)
        world.now += HOUR
    assert not world.violations, f"the invariants hold: {world.violations}"
    return _named(pools[world.pool], is_last=world.pool == f"tier-{len(tiers) - 1}")


def _run_controller(world: JobWorld) -> None:
    """Complete the current move, if there is one."""
    for _ in range(6):
        world.reconcile()
        world.operator_works()
        world.pods_terminate()
        world.now += timedelta(seconds=10)


def _takes_a_node(world: JobWorld) -> int:
    if not world.placed:
        return 0
    world.evict(Cause.EVICTION, 1, is_seen=True)
    return 1


def _named(played: MarketTier, *, is_last: bool) -> WalkOutcome:
    if played.takes_the_job and played.max_failures == UNLIMITED:
        return WalkOutcome.STAYS
    return WalkOutcome.FALLS_OFF if is_last else WalkOutcome.STUCK


def _tier(pool: str, played: MarketTier) -> Tier:
    timeout = _TIMEOUT if played.has_timeout else None
    return Tier(pool=pool, max_failures=played.max_failures, procurement_timeout=timeout)
