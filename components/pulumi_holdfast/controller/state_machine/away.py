"""A job whose tier is in another cluster: it stays suspended here, and its tier's limits apply to the copy that runs there."""

from __future__ import annotations

from pulumi_holdfast.controller.jobs.actions import EventReason, JobEvent, JobStep, Suspend, standing_event
from pulumi_holdfast.controller.jobs.observation import CopyStatus, Observation
from pulumi_holdfast.controller.jobs.state import JobState, Phase
from pulumi_holdfast.controller.state_machine.failback import reserved_tier, step_failback
from pulumi_holdfast.controller.state_machine.failover import (
    SLOW_SUSPENSION_AFTER,
    fail_back,
    fail_over,
    failover_event,
)
from pulumi_holdfast.controller.state_machine.pacing import paced_policy, slack_event
from pulumi_holdfast.controller.state_machine.spending_limits import (
    kept_from_lower_tiers,
    limited_policy,
    spending_event,
)
from pulumi_holdfast.controller.state_machine.tier_visit import new_tier_visit, tier_below, track_wait
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.labels import LOST_COPY
from pulumi_holdfast.ladder.ladder import Policy, Tier, cluster_of, pool_there
from pulumi_holdfast.ladder.quantities import format_duration


def go_away(state: JobState, observation: Observation) -> JobStep:
    """Enter a tier in another cluster: no pod of the job is left here, and its copy is created there."""
    entered = new_tier_visit(state, observation, pool=state.pool, rank=state.rank)
    report = JobEvent(
        reason=EventReason.MOVED,
        message=(
            f"No pod of the job is left: a copy of it is created in the cluster {cluster_of(state.pool)}, for the pool "
            f"{pool_there(state.pool)}, and continues from the latest checkpoint."
        ),
    )
    return JobStep(state=replace(entered, phase=Phase.AWAY), events=(report,))


def seen_there(state: JobState, observation: Observation) -> Observation:
    """Return the observation of a job that is away with the pods of its copy, or unchanged if the copy is unknown.

    For any other job it is unchanged.
    """
    if state.phase is not Phase.AWAY:
        return observation
    known = CopyStatus(pods_placed=int(state.waiting_since is None))
    copy = observation.copy or known
    pool = observation.pools.get(state.pool)
    pools = observation.pools
    if pool is not None and pool.missing_since is not None:
        # Its cluster does not answer, which says nothing of the copy.
        pools = {**pools, state.pool: replace(pool, exists=True)}
    deadline = observation.deadline
    if deadline is not None and observation.copy is not None:
        deadline = replace(deadline, progress=copy.progress)
    return replace(
        observation,
        suspended=False,
        deadline=deadline,
        pods_expected=copy.pods_expected,
        pods_placed=copy.pods_placed,
        pods_missing=0,
        losses=(),
        checkpoints_on_request=False,  # a copy is not reached by requests: it gets SIGTERM
        starting_since=None,
        contending_gang=None,
        pools=pools,
    )


def step_away(state: JobState, observation: Observation, policy: Policy) -> JobStep:
    """Take a job that is away one step further: measure its copy's wait and failures, and fail over or fail back."""
    seen = seen_there(state, observation)
    now, placed = _track(state, seen)
    policy = paced_policy(now, seen, limited_policy(now, seen, policy))
    why = _why_leave(now, seen, policy)
    below = None if why is None else tier_below(now, seen, policy)
    leaves = None
    if why is not None and below is not None:
        leaves = _leave(now, seen, policy, below, why)
    elif why is not None and (kept := kept_from_lower_tiers(now, seen, policy, why)) is not None:
        leaves = _recalled(kept)
    step = leaves or step_failback(now, seen, policy)
    standing = () if why is None or leaves is not None else (_no_lower_tier_event(why),)
    return replace(step, events=(*placed, *step.events, *standing))


def _track(state: JobState, seen: Observation) -> tuple[JobState, tuple[JobEvent, ...]]:
    """Return the state with the copy's wait and its failures, and the events of that change."""
    phase = Phase.RUNNING if state.has_all_nodes else Phase.WAITING
    waited, placed = track_wait(replace(state, phase=phase), seen)
    now = replace(waited, phase=Phase.AWAY)
    copy = seen.copy
    # On another pool there the copy's ladder has its own limits.
    if copy is None or copy.pool != pool_there(state.pool):
        return now, placed
    failures = replace(
        now,
        evictions=copy.evictions,
        application_failures=copy.application_failures,
        unexplained=copy.unexplained,
    )
    return failures, placed


def _why_leave(state: JobState, seen: Observation, policy: Policy) -> JobEvent | None:
    if seen.copy is not None and seen.copy.is_given_up:
        return JobEvent(
            reason=EventReason.TIER_UNAVAILABLE,
            message=f"The copy of the job is given up in the cluster {cluster_of(state.pool)}.",
            is_warning=True,
        )
    return why_move(state, seen, policy)


def why_move(state: JobState, observation: Observation, policy: Policy) -> JobEvent | None:
    """Return why a job must leave its tier by the limits of the tier and of its cost, and by its deadline; None if it stays."""
    return (
        spending_event(state, observation, policy)
        or failover_event(state, observation, policy)
        or slack_event(state, observation, policy)
    )


def _leave(state: JobState, seen: Observation, policy: Policy, below: Tier, why: JobEvent) -> JobStep:
    above = reserved_tier(state, seen, policy)
    if above is not None:
        return fail_back(state, seen, policy, above)
    return _recalled(fail_over(state, seen, policy, below, why))


def _recalled(step: JobStep) -> JobStep:
    """Return the step that suspends a job for any reason: whether its copy has nodes by now cannot be checked here."""
    actions = (
        replace(each, only_without_nodes=False) if isinstance(each, Suspend) else each
        for each in step.actions
    )
    return replace(step, actions=tuple(actions))


def _no_lower_tier_event(why: JobEvent) -> JobEvent:
    message = f"{why.message} No lower tier is available, so the copy stays: add one to the FallbackPolicy."
    return replace(why, message=message, is_warning=True, is_standing=True)


def slow_return_event(state: JobState, observation: Observation) -> tuple[JobEvent, ...]:
    """Warn about a job that cannot be resumed here, because its copy may still exist."""
    if state.suspended_at is None or observation.now < state.suspended_at + SLOW_SUSPENSION_AFTER:
        return ()
    return (
        standing_event(
            EventReason.SLOW_SUSPENSION,
            f"A copy of the job in another cluster still exists {format_duration(SLOW_SUSPENSION_AFTER)} after its recall, so the "
            "job is not resumed here. Check whether that cluster answers, and the copy's pods. If the cluster is lost "
            f"permanently, set the annotation {LOST_COPY} to the epoch of the transfer.",
        ),
    )
