"""Pacing: how a job with a deadline spends its slack, which is the time left minus the work left.

Waiting for spot capacity and every restart spend slack; training spends none, on any tier. So the slack bounds the ladder:
how long the job waits, whether it returns to spot, and when it moves to the last tier and stays. It never falls below what
one restart costs while the job is on spot: an interruption at any time leaves enough to finish on the last tier.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.controller.jobs.actions import EventReason, JobEvent, standing_event
from pulumi_holdfast.controller.jobs.state import JobState, Pace, Phase
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.quantities import format_duration

if TYPE_CHECKING:
    from pulumi_holdfast.controller.jobs.observation import Deadline, Observation
    from pulumi_holdfast.ladder.ladder import Policy, Tier

_NOTHING: Final = timedelta(0)

# A return and the interruption after it each cost one restart: with less slack than both a job stays on the last tier.
RESTARTS_TO_RETURN: Final = 2

# What is known of a job's interruptions before it has any: one in six hours, worth twelve hours of observation.
_USUAL_INTERRUPTIONS: Final = 2
_USUAL_TIME: Final = timedelta(hours=12)

# The slack that is kept for each expected interruption, in restarts: to the last tier, back, and one in reserve.
_RESTARTS_PER_INTERRUPTION: Final = 3

# A gap spends at most half of what the slack has beyond that: the next gap may be as long.
_SHARE_OF_SURPLUS: Final = 0.5

# The time between two attempts to return, in units of the work left for each restart that the slack still pays for. Capacity
# that is available at a later attempt has mostly been available for long, and stays available for long.
_RETURN_INTERVAL: Final = 0.32

# Reports that differ by less from what is recorded are not recorded: each record is a write to the API server.
_NEGLIGIBLE: Final = 8

# The end in an Event is rounded up to this. A job that waits ends later each minute: it is said again when it is twice as late.
_ROUNDING: Final = timedelta(minutes=10)


def track_pace(state: JobState, observation: Observation, policy: Policy) -> JobState:
    """Return the state with its pace as of now: runs that began or ended, and reported progress."""
    deadline = observation.deadline
    if deadline is None:
        return state if state.pace is None else replace(state, pace=None)
    pace = state.pace or Pace(work_done=deadline.done_before)
    there = _pace_there(state, observation)
    pace = _own_pace(pace, deadline, state, observation, policy) if there is None else _as_there(pace, there)
    paced = replace(state, pace=pace)
    pacing = pacing_of(paced, observation, policy)
    return replace(paced, pace=replace(pace, is_late=pacing is not None and pacing.is_late))


def _own_pace(
    pace: Pace, deadline: Deadline, state: JobState, observation: Observation, policy: Policy
) -> Pace:
    now = observation.now
    if pace.counts_from is not None and pace.counts_from > now + policy.restart_cost:
        pace = replace(pace, counts_from=now + policy.restart_cost)
    runs = observation.is_placed and not observation.suspended and observation.outcome is None
    if pace.counts_from is not None and (not runs or observation.restarts != state.restarts):
        ended = now if state.suspended_at is None else min(now, state.suspended_at)
        pace = replace(
            pace,
            work_done=_work_done(pace, deadline, ended, policy.restart_cost),
            counts_from=None,
            interruptions=pace.interruptions + (not observation.suspended),
        )
    if runs:
        begins = pace.counts_from is None
        pace = _with_report(pace, deadline, now, policy.restart_cost)
        if begins:
            # What its program has reported until now is from before the restart.
            pace = replace(pace, counts_from=max(now, _start_of_restart(state, observation, policy)))
    return pace


def _pace_there(state: JobState, observation: Observation) -> Pace | None:
    """The pace that the controller of another cluster has recorded of the job's copy; None if that is not known."""
    copy = observation.copy if state.phase is Phase.AWAY else None
    return None if copy is None else copy.pace


def _as_there(pace: Pace, there: Pace) -> Pace:
    """Return the pace of a job whose copy has come this far: the copy begins with what the job has done before it.

    Only a report takes back what was counted. A controller that does not know what was done before begins at 0.
    """
    is_reported = there.progress is not None
    has_ended = pace.counts_from is not None and there.counts_from is None
    return replace(
        pace,
        work_done=there.work_done if is_reported else max(pace.work_done, there.work_done),
        counts_from=there.counts_from,
        progress=there.progress if is_reported else pace.progress,
        interruptions=pace.interruptions + has_ended,
    )


def _start_of_restart(state: JobState, observation: Observation, policy: Policy) -> datetime:
    """When a gang that has just been placed makes progress: its restart began with the move, on spot when it was placed.

    On spot it may have waited for capacity until now, also after a failback to reserved nodes that it has lost again.
    """
    began = (state.suspended_at or state.waiting_since) if is_safe(state.pool, policy) else None
    return (began or observation.now) + policy.restart_cost


def _with_report(pace: Pace, deadline: Deadline, now: datetime, restart_cost: timedelta) -> Pace:
    if deadline.progress is None or deadline.progress == pace.progress:
        return pace
    reported = deadline.work * deadline.progress
    is_due = pace.counts_from is None or now - pace.counts_from >= restart_cost / 2
    is_new = abs(reported - _work_done(pace, deadline, now, restart_cost)) > restart_cost / _NEGLIGIBLE
    if not (is_due or is_new):
        return pace
    return replace(pace, work_done=reported, counts_from=now, progress=deadline.progress)


def _work_done(pace: Pace, deadline: Deadline, at: datetime, restart_cost: timedelta) -> timedelta:
    """The work that is done at a time. A reported progress is extrapolated for one `restart_cost` after the last report."""
    if pace.counts_from is None:
        return pace.work_done
    run = max(_NOTHING, at - pace.counts_from)
    return pace.work_done + (run if deadline.progress is None else min(run, restart_cost))


def copy_is_on_demand(state: JobState, observation: Observation) -> bool:
    """Whether the copy of a job that is away runs on on-demand, on the ladder of its cluster."""
    copy = observation.copy if state.phase is Phase.AWAY else None
    return copy is not None and copy.capacity is CapacityType.ON_DEMAND


def is_safe(pool: str, policy: Policy) -> bool:
    """Whether a deadline can rely on a tier: it is on-demand, or the last one."""
    rank = policy.rank_of(pool)
    if rank is None:
        return False
    capacity = policy.tiers[rank].facts.capacity
    if not policy.tiers[rank].is_open:
        return False
    return capacity is CapacityType.ON_DEMAND or (
        capacity is not CapacityType.SPOT and rank == len(policy.tiers) - 1
    )


@dataclass(frozen=True, kw_only=True)
class Pacing:
    """The slack of a job at one moment, and what it allows.

    `left`: the work left. `slack`: what remains of the time when all of it is done without another interruption, but with
    the restart under way. `recovering`: how much of a restart's cost is yet to come, or is counted already. `spends_from`:
    from this time slack decreases with the clock; None while the job trains.
    """

    finish_by: datetime
    left: timedelta
    slack: timedelta
    recovering: timedelta
    spends_from: datetime | None
    restart_cost: timedelta
    is_safe: bool
    is_running: bool
    wait_limit: timedelta
    return_interval: timedelta

    @property
    def may_return(self) -> bool:
        """Whether the slack pays for a return to spot and an interruption there."""
        return self.slack >= RESTARTS_TO_RETURN * self.restart_cost

    @property
    def expected_end(self) -> datetime:
        """When the job ends if it is on the last tier from now on."""
        return self.finish_by - self.slack + (_NOTHING if self.is_running else self.recovering)

    @property
    def is_late(self) -> bool:
        """Whether the deadline cannot be kept any more."""
        return self.expected_end > self.finish_by

    @property
    def must_leave_spot(self) -> bool:
        """Whether a job on spot must move to the last tier now.

        A running gang moves only while the move keeps the deadline: later the move would make it late, and without a move it
        may still be in time.
        """
        if self.is_safe:
            return False
        if not self.is_running:
            return not self.may_return
        in_hand = self.slack + self.recovering
        return self.slack < self.restart_cost and in_hand >= self.restart_cost / 2

    def reaches(self, slack: timedelta) -> datetime | None:
        """When the slack falls to an amount; None if it does not."""
        return None if self.spends_from is None else self.spends_from + (self.slack - slack)


def pacing_of(state: JobState, observation: Observation, policy: Policy) -> Pacing | None:
    """Return a job's pacing; None for a job without a deadline, and on a ladder without a tier that can be relied on."""
    deadline, pace, now = observation.deadline, state.pace, observation.now
    if deadline is None or pace is None or not any(is_safe(tier.name, policy) for tier in policy.tiers):
        return None
    cost = policy.restart_cost
    left = max(_NOTHING, deadline.work - _work_done(pace, deadline, now, cost))
    begins = now if pace.counts_from is None else max(now, pace.counts_from)
    slack = deadline.finish_by - begins - left
    safe = is_safe(state.pool, policy) or copy_is_on_demand(state, observation)
    if pace.counts_from is None:
        began = state.suspended_at or (state.waiting_since if safe else None) or now
        recovering = max(_NOTHING, cost - max(_NOTHING, now - began))
        spends_from: datetime | None = now
    else:
        recovering = begins - now
        spends_from = None if deadline.progress is None else max(now, pace.counts_from + cost)
    return Pacing(
        finish_by=deadline.finish_by,
        left=left,
        slack=slack,
        recovering=recovering,
        spends_from=spends_from,
        restart_cost=cost,
        is_safe=safe,
        is_running=pace.counts_from is not None,
        wait_limit=_wait_limit(state, observation, policy, deadline.finish_by - left),
        return_interval=_return_interval(left, slack, policy),
    )


def _wait_limit(state: JobState, observation: Observation, policy: Policy, latest: datetime) -> timedelta:
    """How long one wait for spot may be. `latest`: when the work must begin to end in time, without a restart.

    It is the same during the whole wait. A machine that is available comes within `hold_timeout`; no wait is shorter.
    """
    began = (state.waiting_since or observation.now) - state.waited
    left = (state.pace.interruptions if state.pace else 0) + _USUAL_INTERRUPTIONS
    work_left = observation.deadline.finish_by - latest if observation.deadline else _NOTHING
    expected = left * (work_left / (max(_NOTHING, began - observation.created) + _USUAL_TIME))
    kept = policy.restart_cost * (RESTARTS_TO_RETURN + _RESTARTS_PER_INTERRUPTION * expected)
    return max(policy.hold_timeout, (latest - began - kept) * _SHARE_OF_SURPLUS)


def _return_interval(left: timedelta, slack: timedelta, policy: Policy) -> timedelta:
    """How long a job stays on the last tier before it tries spot again: the less slack for the work left, the longer."""
    return policy.restart_cost * (_RETURN_INTERVAL * (left / max(slack, policy.restart_cost)))


def paced_policy(state: JobState, observation: Observation, policy: Policy) -> Policy:
    """Return the ladder as the slack bounds it now; the ladder itself for a job without a deadline.

    On spot neither failures nor the last wait before on-demand move the job: its slack does. On the last tier the slack says
    when the job tries to return, and a `returnAfter` of never remains.
    """
    pacing = pacing_of(state, observation, policy)
    if pacing is None:
        return policy
    bounded = replace(policy, tiers=tuple(_paced_tier(rank, policy) for rank in range(len(policy.tiers))))
    if not pacing.may_return:
        # Past its `deadline` a ladder has the last tier only, and no failback.
        return replace(bounded, deadline=_NOTHING, return_after=None)
    if policy.return_after is None or not pacing.is_safe:
        return replace(bounded, return_after=None)
    return replace(bounded, return_after=pacing.return_interval)


def _paced_tier(rank: int, policy: Policy) -> Tier:
    tier, below = policy.tiers[rank], policy.tiers[rank + 1 :]
    if is_safe(tier.name, policy):
        return tier
    is_lowest = not below or is_safe(below[0].name, policy)
    return replace(
        tier, max_failures=None, procurement_timeout=None if is_lowest else tier.procurement_timeout
    )


def slack_event(state: JobState, observation: Observation, policy: Policy) -> JobEvent | None:
    """Return why a job on spot must move on for its deadline; None if its slack suffices."""
    pacing = pacing_of(state, observation, policy)
    if pacing is None or pacing.is_safe:
        return None
    ends = _wait_ends(state, pacing)
    if not pacing.must_leave_spot and (ends is None or observation.now < ends):
        return None
    does = (
        "can afford no further interruption"
        if pacing.is_running
        else f"has {observation.pods_placed} of {observation.pods_expected} nodes in {state.pool}"
    )
    return JobEvent(
        reason=EventReason.SLACK_SPENT,
        message=(
            f"The job {does}: it has {_duration(pacing.left)} of work left, and {_duration(pacing.slack)} of slack until its "
            f"deadline, {pacing.finish_by:%Y-%m-%d %H:%M} UTC."
        ),
    )


def late_event(state: JobState, observation: Observation, policy: Policy) -> tuple[JobEvent, ...]:
    """Warn that a job will miss its deadline on any tier, with the expected end."""
    pacing = pacing_of(state, observation, policy)
    if pacing is None or not pacing.is_late or state.phase is Phase.FINISHED:
        return ()
    late = pacing.expected_end.timestamp()
    doublings = max(0, math.ceil(math.log2((pacing.expected_end - pacing.finish_by) / _ROUNDING)))
    end = datetime.fromtimestamp(
        -(-late // _ROUNDING.total_seconds()) * _ROUNDING.total_seconds(), tz=pacing.finish_by.tzinfo
    )
    return (
        standing_event(
            EventReason.DEADLINE_MISSED,
            f"The job will end after its deadline, {pacing.finish_by:%Y-%m-%d %H:%M} UTC, even if it stays on "
            f"{policy.tiers[-1].name}: at about {end:%Y-%m-%d %H:%M} UTC. Move finish-by, or make the work shorter.",
            compared=f"{pacing.finish_by.isoformat()} {doublings}",
        ),
    )


def pacing_deadlines(
    state: JobState, observation: Observation, policy: Policy
) -> tuple[datetime | None, ...]:
    """The times at which this module's result may change although nothing else does."""
    pacing = pacing_of(state, observation, policy)
    if pacing is None:
        return ()
    cost = pacing.restart_cost
    return (
        _wait_ends(state, pacing),
        pacing.reaches(RESTARTS_TO_RETURN * cost),
        pacing.reaches(cost),
        pacing.reaches(_NOTHING),
    )


def _wait_ends(state: JobState, pacing: Pacing) -> datetime | None:
    if pacing.is_safe or state.waiting_since is None or pacing.is_running:
        return None
    return state.waiting_since - state.waited + pacing.wait_limit


def _duration(time: timedelta) -> str:
    return format_duration(time) if time >= timedelta(seconds=1) else "0s"
