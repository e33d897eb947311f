"""A job's position on its ladder, its visits of tiers, and how long it waits for capacity in each.

Covers the tiers above and below although the ladder may be edited, and how a visit begins, pauses and resumes. A job waits until
every expected pod has a live node, whether or not it has started.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Final

from pulumi_holdfast.controller.jobs.actions import EventReason, JobEvent
from pulumi_holdfast.controller.jobs.observation import Observation, PoolStatus
from pulumi_holdfast.controller.jobs.state import JobState, Phase
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.ladder import Policy, Tier
from pulumi_holdfast.ladder.quantities import format_duration

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


def is_available(tier: Tier, observation: Observation) -> bool:
    """Whether jobs can start on a tier: its pool exists, as far as is known, has its capacity at this time, and is open."""
    return tier.is_open and _takes_jobs(tier.name, observation) and tier.facts.window.is_open(observation.now)


def current_tier(state: JobState, policy: Policy) -> Tier | None:
    """The tier the job is on; None if it was removed from the ladder."""
    rank = policy.rank_of(state.pool)
    return None if rank is None else policy.tiers[rank]


def tier_below(state: JobState, observation: Observation, policy: Policy) -> Tier | None:
    """The tier the job fails over to: the next one that is available; past the deadline the last one.

    A removed tier is followed by the tier that has its rank now, or by the last tier.
    """
    below = [tier for tier in policy.tiers[_first_below(state, policy) :] if is_available(tier, observation)]
    if not below:
        return None
    return below[-1] if is_past_deadline(observation, policy) else below[0]


def tiers_above(state: JobState, observation: Observation, policy: Policy) -> tuple[Tier, ...]:
    """The better tiers that are available, best first, and stay so for long enough that a move to them is worth its cost.

    Only tiers of the job's own cluster: capacity in another one cannot be reserved for it.
    """
    rank = policy.rank_of(state.pool)
    top = _first_below(state, policy) if rank is None else rank
    worth = policy.hold_timeout + MOVES_TO_WORTH * policy.restart_cost
    return tuple(
        tier
        for tier in policy.tiers[:top]
        if not tier.cluster
        and tier.is_open
        and _takes_jobs(tier.name, observation)
        and tier.facts.window.is_open_for(worth, observation.now)
    )


def is_past_deadline(observation: Observation, policy: Policy) -> bool:
    """Whether the job has reached its ladder's `deadline`, after which only the last tier is used."""
    return policy.deadline is not None and observation.now >= observation.created + policy.deadline


def _first_below(state: JobState, policy: Policy) -> int:
    rank = policy.rank_of(state.pool)
    return min(state.rank, len(policy.tiers) - 1) if rank is None else rank + 1


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


def yield_deadline(state: JobState, observation: Observation, tier: Tier | None) -> datetime | None:
    """When a gang that blocks another may have to yield; None while it blocks none."""
    if state.waiting_since is None or observation.contending_gang is None:
        return None
    limit = tier.procurement_timeout if tier else None
    own = state.waiting_since + (limit / YIELD_SHARE if limit else YIELD_WITHOUT_LIMIT)
    if observation.last_yield_at is None or observation.last_yield_at > observation.now:
        return own
    return max(own, observation.last_yield_at + YIELD_INTERVAL)


def must_yield(state: JobState, observation: Observation, tier: Tier | None) -> bool:
    """Whether this gang must yield its nodes: the last in turn of the gangs that wait half placed, see ContendingGang.

    Each gang decides for itself, by an order that is the same for all of them; the first never yields.
    """
    if (
        not observation.is_half_placed
        or observation.contending_gang is None
        or not is_reached(yield_deadline(state, observation, tier), observation.now)
    ):
        return False
    return observation.gang_in(observation.pool) > observation.contending_gang


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
