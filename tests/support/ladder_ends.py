"""Where a job ends that is taken down its ladder by what the controller decides, in a market that takes and never gives.

Nothing here knows the rules of the walk: the controller's own decisions are carried out, one after another, until nothing
changes any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holdfast.fallback.policy.policy import Policy, PolicyTier
from holdfast.fallback.state_machine.observation import Cause
from holdfast.scheduling.ladder import UNLIMITED
from holdfast.scheduling.reachability.walk import Outcome
from tests.support.ladder import HOUR, MINUTE, PODS
from tests.support.ladder_world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

#: More losses than any tier drawn here allows; after as many, capacity comes back no more.
_LOSSES: Final = 8
#: Looks without any move after which there will be none.
_QUIET: Final = 25
_TIMEOUT: Final = 15 * MINUTE


@dataclass(frozen=True, kw_only=True)
class PlayedTier:
    """A tier as the market sees it: `takes_the_job` says whether the gang can have its pool's nodes at all."""

    takes_the_job: bool
    is_on_demand: bool
    max_failures: int | None = None
    has_timeout: bool = False


def end_of(rungs: Sequence[PlayedTier]) -> Outcome:
    """Take a job down, and say where it is when it moves no more."""
    pools = {f"rung-{number}": rung for number, rung in enumerate(rungs)}
    world = World(policy=Policy(tiers=tuple(_tier(*each) for each in pools.items())), pool="rung-0")
    world.pods_pool = world.pool
    losses, since = 0, 0
    while since < _QUIET:
        before = world.pool
        _let_the_controller_work(world)
        rung = pools[world.pool]
        losses, since = (0, 0) if world.pool != before else (losses, since + 1)
        if rung.takes_the_job and losses < _LOSSES:
            world.capacity_comes(PODS)
            world.look()
            if rung.is_on_demand:
                return Outcome.ARRIVES
            losses += _takes_a_node(world)
        world.now += HOUR
    assert not world.broken, f"the controller keeps its promises: {world.broken}"
    return _named(pools[world.pool], is_last=world.pool == f"rung-{len(rungs) - 1}")


def _let_the_controller_work(world: World) -> None:
    """Carry a move out to its end, if there is one."""
    for _ in range(6):
        world.look()
        world.operator_works()
        world.pods_terminate()
        world.now += timedelta(seconds=10)


def _takes_a_node(world: World) -> int:
    if not world.placed:
        return 0
    world.evict(Cause.EVICTION, 1, is_seen=True)
    return 1


def _named(rung: PlayedTier, *, is_last: bool) -> Outcome:
    if rung.takes_the_job and rung.max_failures == UNLIMITED:
        return Outcome.STAYS
    return Outcome.FALLS_OFF if is_last else Outcome.STUCK


def _tier(pool: str, rung: PlayedTier) -> PolicyTier:
    timeout = _TIMEOUT if rung.has_timeout else None
    return PolicyTier(pool=pool, max_failures=rung.max_failures, procurement_timeout=timeout)
