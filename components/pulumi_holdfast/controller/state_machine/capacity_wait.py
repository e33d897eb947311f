"""Measures how long a job waits for capacity: until every expected pod has a live node, whether or not it has started."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Final

from pulumi_holdfast.controller.policy.policy import Policy, PolicyTier
from pulumi_holdfast.controller.state_machine.events import EventReason, JobEvent
from pulumi_holdfast.controller.state_machine.observation import ContendingGang, Observation
from pulumi_holdfast.controller.state_machine.state import JobState, Phase
from pulumi_holdfast.controller.state_machine.tier_visit import NO_WAIT
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.quantities import format_duration

# The first half of the wait lets the gangs resolve the conflict, the second half is for the gang that keeps its nodes.
# Without a timeout: as long as machines need to boot, so that gangs that are merely slow do not yield.
YIELD_SHARE: Final = 2
YIELD_WITHOUT_LIMIT: Final = timedelta(minutes=5)

# Time for pods to terminate and for the scheduler to give their nodes to another gang. The nodes of one gang may be
# enough; without this interval all gangs but the oldest yield one right after the other.
YIELD_INTERVAL: Final = timedelta(seconds=15)

# Time that the other gang needs to take the freed nodes.
SHORTEST_PAUSE: Final = timedelta(minutes=1)
_MAX_DOUBLINGS: Final = 3

# Operators create pods within a second or two, and those of a thousand jobs within a minute on two cores.
PODS_CREATED_WITHIN: Final = timedelta(minutes=1)


def time_waited(state: JobState, observation: Observation) -> timedelta:
    """How long the job has waited for nodes in this wait, without pauses and without time in which no node could join."""
    if state.waiting_since is None:
        return state.waited
    return state.waited + max(NO_WAIT, observation.now - state.waiting_since - observation.unseen)


def wait_ends(state: JobState, observation: Observation, limit: timedelta | None) -> datetime | None:
    """When the wait reaches `limit`; None if the job does not wait or there is no limit."""
    if state.waiting_since is None or limit is None:
        return None
    return state.waiting_since + limit - state.waited + observation.unseen


def is_reached(ends: datetime | None, now: datetime) -> bool:
    """Whether an optional time has been reached."""
    return ends is not None and now >= ends


def track_wait(state: JobState, observation: Observation) -> tuple[JobState, tuple[JobEvent, ...]]:
    """Return the state with its wait started or ended, and the events of that change."""
    if not observation.is_placed:
        if state.phase is Phase.WAITING:
            return state, ()
        return replace(state, phase=Phase.WAITING, waiting_since=observation.now), ()
    if state.phase is Phase.RUNNING:
        return state, ()
    placed = replace(
        state, phase=Phase.RUNNING, waiting_since=None, waited=NO_WAIT, yields=0, suspended_at=None
    )
    # An elastic job may have no worker yet.
    return placed, (_placed_event(state, observation),) if observation.pods_expected else ()


def slow_start_events(observation: Observation, policy: Policy) -> tuple[JobEvent, ...]:
    """Warn that pods with nodes do not start.

    The job does not move, since its pods would not start on other nodes either.
    """
    if (
        observation.starting_since is None
        or observation.now < observation.starting_since + policy.start_timeout
    ):
        return ()
    missing = observation.pods_placed - observation.pods_started
    return (
        JobEvent(
            reason=EventReason.SLOW_START,
            message=(
                f"{missing} of {observation.pods_placed} pods have had a node for longer than "
                f"{format_duration(policy.start_timeout)} and have not started: read their events for an image "
                "that cannot be pulled or a volume that cannot be mounted. The job stays on its tier."
            ),
            is_warning=True,
            is_standing=True,
        ),
    )


def pods_missing_deadline(state: JobState, observation: Observation) -> datetime | None:
    """When missing pods are reported; None if all exist or the job does not wait."""
    if state.waiting_since is None or not observation.pods_missing:
        return None
    return state.waiting_since + PODS_CREATED_WITHIN


def pods_missing_events(state: JobState, observation: Observation) -> tuple[JobEvent, ...]:
    """Warn that pods are not created. The wait continues, since the next tier's quota may admit them."""
    if not is_reached(pods_missing_deadline(state, observation), observation.now):
        return ()
    return (
        JobEvent(
            reason=EventReason.PODS_NOT_CREATED,
            message=(
                f"{observation.pods_missing} of {observation.pods_expected} pods do not exist after "
                f"{format_duration(PODS_CREATED_WITHIN)}, so no machine can be provisioned for them: read the events of the job's "
                "child Jobs, or of its RayCluster, for a ResourceQuota or an admission webhook that rejects them."
            ),
            is_warning=True,
            is_standing=True,
        ),
    )


def yield_deadline(state: JobState, observation: Observation, tier: PolicyTier | None) -> datetime | None:
    """When a gang that blocks another may have to yield; None while it blocks none."""
    if state.waiting_since is None or observation.contending_gang is None:
        return None
    limit = tier.procurement_timeout if tier else None
    own = state.waiting_since + (limit / YIELD_SHARE if limit else YIELD_WITHOUT_LIMIT)
    if observation.last_yield_at is None or observation.last_yield_at > observation.now:
        return own
    return max(own, observation.last_yield_at + YIELD_INTERVAL)


def must_yield(state: JobState, observation: Observation, tier: PolicyTier | None) -> bool:
    """Whether this gang must yield its nodes: the youngest of the gangs that wait half placed.

    Each gang decides for itself, by an order that is the same for all of them; the oldest never yields.
    """
    if (
        not observation.is_half_placed
        or observation.contending_gang is None
        or not is_reached(yield_deadline(state, observation, tier), observation.now)
    ):
        return False
    return ContendingGang(created=observation.created, uid=observation.uid) > observation.contending_gang


def pause_length(state: JobState) -> timedelta:
    """How long a gang that yielded stays suspended: twice as long each time, spread by a hash of the job's uid."""
    digest = hashlib.sha256(f"{state.uid}/{state.yields}".encode()).digest()
    spread = int.from_bytes(digest[:4], "big") / 2**32
    return SHORTEST_PAUSE * 2 ** min(state.yields, _MAX_DOUBLINGS) * (1 + spread)


def _placed_event(state: JobState, observation: Observation) -> JobEvent:
    # At least one second: 0 s has no text form.
    seconds = max(timedelta(seconds=1), time_waited(state, observation))
    return JobEvent(
        reason=EventReason.PLACED,
        message=f"All {observation.pods_expected} pods have nodes in {state.pool} after {format_duration(seconds)}.",
    )
