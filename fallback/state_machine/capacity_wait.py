"""Waiting for capacity, measured by nodes: every expected pod has a live one, whether or not it has started."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holdfast.fallback.state_machine.events import Report
from holdfast.fallback.state_machine.observation import Rival
from holdfast.fallback.state_machine.state import Phase
from holdfast.fallback.state_machine.tier_visit import NOTHING_WAITED
from holdfast.scheduling.quantities import format_duration

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.policy.policy import Policy, PolicyTier
    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.fallback.state_machine.state import JobState

# Half of the wait is for the gangs to sort themselves out, half for the one that is left. Without a limit: as long as
# machines need to boot, so that two gangs which are only slow are not told apart.
YIELD_SHARE: Final = 2
YIELD_WITHOUT_LIMIT: Final = timedelta(minutes=5)

# In which pods end and the scheduler gives their nodes to another gang: what one lets go may be enough, and without it all
# gangs but the eldest let go one right after the other.
YIELDS_APART: Final = timedelta(seconds=15)

# What the other gang needs to take the nodes that were given up.
SHORTEST_PAUSE: Final = timedelta(minutes=1)
_MOST_DOUBLINGS: Final = 3

# Operators make pods within a second or two, and a thousand jobs' at once within a minute on two cores.
MADE_WITHIN: Final = timedelta(minutes=1)


def waited(state: JobState, now: datetime) -> timedelta:
    """How long the job has waited for nodes in this wait, pauses left out."""
    if state.waiting_since is None:
        return state.waited
    return state.waited + max(NOTHING_WAITED, now - state.waiting_since)


def wait_ends(state: JobState, limit: timedelta | None) -> datetime | None:
    """When the wait reaches `limit`; None when nothing waits or nothing limits it."""
    if state.waiting_since is None or limit is None:
        return None
    return state.waiting_since + limit - state.waited


def is_over(ends: datetime | None, now: datetime) -> bool:
    """Whether a time that may be none is reached."""
    return ends is not None and now >= ends


def tracked(state: JobState, seen: Observation) -> tuple[JobState, tuple[Report, ...]]:
    """Return the state with its wait begun or ended, and what is to be said of it."""
    if not seen.is_placed:
        if state.phase is Phase.WAITING:
            return state, ()
        return replace(state, phase=Phase.WAITING, waiting_since=seen.now), ()
    if state.phase is Phase.RUNNING:
        return state, ()
    placed = replace(
        state,
        phase=Phase.RUNNING,
        waiting_since=None,
        waited=NOTHING_WAITED,
        yields=0,
        suspended_at=None,
    )
    return placed, (_placed_report(state, seen),)


def slow_start(seen: Observation, policy: Policy) -> tuple[Report, ...]:
    """Say that pods which have nodes do not start; it moves nothing, since other nodes would not start them either."""
    if seen.starting_since is None or seen.now < seen.starting_since + policy.start_timeout:
        return ()
    missing = seen.pods_placed - seen.pods_started
    return (
        Report(
            reason="SlowStart",
            message=(
                f"{missing} of {seen.pods_placed} pods have had a node for more than "
                f"{format_duration(policy.start_timeout)} and have not started: look at their events for an image "
                "that cannot be pulled or a volume that cannot be mounted. The job stays on its tier."
            ),
            is_warning=True,
            is_standing=True,
        ),
    )


def unmade_from(state: JobState, seen: Observation) -> datetime | None:
    """When pods that do not exist are said to be refused; None where all do or nothing waits."""
    if state.waiting_since is None or not seen.pods_unmade:
        return None
    return state.waiting_since + MADE_WITHIN


def unmade(state: JobState, seen: Observation) -> tuple[Report, ...]:
    """Say that pods are refused; the wait counts as any, since the next tier's quota may have room for them."""
    if not is_over(unmade_from(state, seen), seen.now):
        return ()
    return (
        Report(
            reason="PodsNotMade",
            message=(
                f"{seen.pods_unmade} of {seen.pods_expected} pods have not been made for more than "
                f"{format_duration(MADE_WITHIN)}, so that no machine can come for them: look at the events of the job's "
                "child Jobs, or of its RayCluster, for a ResourceQuota or an admission webhook that refuses them."
            ),
            is_warning=True,
            is_standing=True,
        ),
    )


def yields_at(state: JobState, seen: Observation, tier: PolicyTier | None) -> datetime | None:
    """When a gang that blocks another may be told to let go; None while it blocks none."""
    if state.waiting_since is None or seen.rival is None:
        return None
    limit = tier.procurement_timeout if tier else None
    own = state.waiting_since + (limit / YIELD_SHARE if limit else YIELD_WITHOUT_LIMIT)
    if seen.gave_way_at is None or seen.gave_way_at > seen.now:
        return own
    return max(own, seen.gave_way_at + YIELDS_APART)


def must_yield(state: JobState, seen: Observation, tier: PolicyTier | None) -> bool:
    """Whether this gang is the one that lets go of its nodes: the youngest of those that wait half placed.

    Each gang decides for itself, by an order that is the same for all of them; the oldest never yields.
    """
    if not seen.is_half_placed or seen.rival is None or not is_over(yields_at(state, seen, tier), seen.now):
        return False
    return Rival(created=seen.created, uid=seen.uid) > seen.rival


def pause(state: JobState) -> timedelta:
    """How long a gang that yielded stays away: twice as long each time, spread by the job's uid as a seed."""
    digest = hashlib.sha256(f"{state.uid}/{state.yields}".encode()).digest()
    spread = int.from_bytes(digest[:4], "big") / 2**32
    return SHORTEST_PAUSE * 2 ** min(state.yields, _MOST_DOUBLINGS) * (1 + spread)


def _placed_report(state: JobState, seen: Observation) -> Report:
    # Whole seconds, and never none: a duration of 0 s has no text.
    seconds = max(timedelta(seconds=1), waited(state, seen.now))
    return Report(
        reason="Placed",
        message=f"All {seen.pods_expected} pods have nodes in {state.pool} after {format_duration(seconds)}.",
    )
