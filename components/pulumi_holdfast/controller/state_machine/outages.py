"""Counts outages: a gang's loss once, a wave of reclaims once, and restarts that happened while no replica watched."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from pulumi_holdfast.controller.jobs.observation import Cause, Loss, Observation
from pulumi_holdfast.controller.jobs.state import JobState, OutageKind, TimedFailure
from pulumi_holdfast.controller.state_machine.tier_visit import latest_loss_at
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.ladder import MOST_TIMED_FAILURES, Failures, Policy

# A node that answers again within this time has cost nothing: a kubelet reports every 10 s, and the node controller
# itself waits 40 to 50 s before it calls a node unreachable. The Job controller needs another minute.
UNREACHABLE_AFTER: Final = timedelta(seconds=45)
# From the end of a pod to that of a peer that notices it.
_END_TAKES: Final = timedelta(seconds=5)


def counted_failures(state: JobState, mode: Failures) -> int:
    """How many outages of this tier visit count against the tier's `maxFailures`."""
    if mode is Failures.EVICTIONS:
        return state.evictions
    return state.evictions + state.application_failures + state.unexplained


def count_losses(state: JobState, observation: Observation, policy: Policy) -> JobState:
    """Return the state with every loss counted that is new since the last reconciliation, and without old failures."""
    state = _without_old_failures(state, observation.now, policy.failure_window)
    counted = _count_new_losses(state, observation, policy)
    return (
        _with_failure_times(counted, before=state, now=observation.now) if policy.failure_window else counted
    )


def count_eviction(state: JobState, now: datetime, policy: Policy) -> JobState:
    """Return the state with one more eviction, which ended the job."""
    counted = _add(state, OutageKind.EVICTION, 1)
    return _with_failure_times(counted, before=state, now=now) if policy.failure_window else counted


def _count_new_losses(state: JobState, observation: Observation, policy: Policy) -> JobState:
    after = state
    for loss in sorted(_new_losses(state, observation), key=lambda loss: loss.at):
        after = _with_loss(after, loss, observation.now, policy.outage_window)
    # The restart of an earlier outage may be observed together with the next outage, and does not belong to that one.
    due = int(state.restart_expected) + int(after.outage_counted_at != state.outage_counted_at)
    return _with_restarts(after, observation, policy.outage_window, due)


_COUNTERS: Final = {
    OutageKind.EVICTION: "evictions",
    OutageKind.APPLICATION: "application_failures",
    OutageKind.UNEXPLAINED: "unexplained",
}


def _without_old_failures(state: JobState, now: datetime, window: timedelta | None) -> JobState:
    """Return the state without the failures that are older than `failureWindow`; those without a time stay."""
    if window is None:
        return replace(state, failures=()) if state.failures else state
    old = [each for each in state.failures if each.at < now - window]
    if not old:
        return state
    kept = replace(state, failures=tuple(each for each in state.failures if each.at >= now - window))
    for each in old:
        kept = _add(kept, each.kind, -1)
    return kept


def _with_failure_times(state: JobState, *, before: JobState, now: datetime) -> JobState:
    """Return the state with the time of each failure that was counted since `before`, and without those taken back.

    Of each kind as many are kept as any limit counts. The oldest ones beyond that are removed, because a failure without a
    time would count indefinitely.
    """
    failures = list(before.failures)
    for kind, counter in _COUNTERS.items():
        more: int = getattr(state, counter) - getattr(before, counter)
        failures += [TimedFailure(kind=kind, at=now)] * more
        for _ in range(-more):
            last = next((each for each in reversed(failures) if each.kind is kind), None)
            if last is not None:
                failures.remove(last)
        timed = [each for each in failures if each.kind is kind]
        for oldest in timed[: max(0, len(timed) - MOST_TIMED_FAILURES)]:
            failures.remove(oldest)
            state = _add(state, kind, -1)
    return replace(state, failures=tuple(failures))


def unreachable_deadline(state: JobState, observation: Observation) -> datetime | None:
    """When the first unreachable node counts as lost, unless it answers again."""
    waits = [
        loss.at + UNREACHABLE_AFTER
        for loss in observation.losses
        if _is_of_this_visit(state, loss) and not _is_certain(loss, observation.now)
    ]
    return min(waits, default=None)


def _new_losses(state: JobState, observation: Observation) -> list[Loss]:
    return [
        loss
        for loss in observation.losses
        if _is_of_this_visit(state, loss) and _is_certain(loss, observation.now)
    ]


def _is_of_this_visit(state: JobState, loss: Loss) -> bool:
    is_past = state.losses_counted_until is not None and loss.at <= state.losses_counted_until
    return not is_past and loss.pool in {None, state.pool}


def _is_certain(loss: Loss, now: datetime) -> bool:
    return loss.cause is not Cause.UNREACHABLE or now - loss.at >= UNREACHABLE_AFTER


def _with_loss(state: JobState, loss: Loss, now: datetime, window: timedelta) -> JobState:
    kind = OutageKind.APPLICATION if loss.cause is Cause.APPLICATION else OutageKind.EVICTION
    if _ends_with_evicted_peer(state, loss):
        return state
    if not _is_within_outage(state, loss, now, window) or _hits_next_gang(state, loss, window):
        begun = replace(
            state, restart_expected=True, losses_counted_until=_losses_counted_before(state, loss, window)
        )
        return _with_outage(begun, kind, loss, now)
    if state.outage_kind is kind or not _explains(state, loss, kind):
        return state
    return _reclassify(state, kind, loss, window)


def _is_within_outage(state: JobState, loss: Loss, now: datetime, window: timedelta) -> bool:
    if state.outage_at is not None:
        return loss.at <= state.outage_at + window
    return _is_recent(state, now, window)


def _ends_with_evicted_peer(state: JobState, loss: Loss) -> bool:
    """Whether a program failed because a peer, which was evicted, ended: up to the end of its grace period.

    It belongs to the eviction, also if the window is shorter.
    """
    return (
        loss.cause is Cause.APPLICATION
        and state.outage_kind is OutageKind.EVICTION
        and state.outage_at is not None
        and loss.pod_created_at is not None
        and loss.pod_created_at <= state.outage_at <= loss.at <= state.outage_at + loss.grace + _END_TAKES
    )


def _hits_next_gang(state: JobState, loss: Loss, window: timedelta) -> bool:
    """Whether a loss within the window belongs to the gang that was started after the outage, and counts separately.

    A program that fails again has failed twice. A wave that also reclaims the new gang's nodes is still one wave.
    """
    is_next = (
        loss.pod_created_at is not None
        and state.outage_at is not None
        and loss.pod_created_at > state.outage_at
    )
    return is_next and (loss.cause is Cause.APPLICATION or not _is_in_wave(state, loss, window))


def _is_in_wave(state: JobState, loss: Loss, window: timedelta) -> bool:
    return state.eviction_at is not None and loss.at <= state.eviction_at + window


def _explains(state: JobState, loss: Loss, kind: OutageKind) -> bool:
    """Whether a further loss shows that the last outage had another cause than it was counted as.

    A worker that fails because of a lost connection is observed before the eviction that caused it: an eviction explains the
    failures of its own gang, not the reverse. Any loss explains a restart without a known cause.
    """
    if state.outage_kind is OutageKind.UNEXPLAINED:
        return True
    is_of_gang_before = state.outage_pod_created_at is not None and loss.at < state.outage_pod_created_at
    is_of_next_gang = (
        loss.pod_created_at is not None
        and state.outage_at is not None
        and loss.pod_created_at > state.outage_at
    )
    return kind is OutageKind.EVICTION and not is_of_gang_before and not is_of_next_gang


def _reclassify(state: JobState, kind: OutageKind, loss: Loss, window: timedelta) -> JobState:
    without = _add(state, state.outage_kind, -1)
    known = replace(
        without,
        outage_kind=kind,
        outage_at=state.outage_at or loss.at,
        outage_pod_created_at=state.outage_pod_created_at or loss.pod_created_at,
    )
    if kind is not OutageKind.EVICTION:
        return _add(known, kind, 1)
    return known if _is_in_wave(state, loss, window) else _add(replace(known, eviction_at=loss.at), kind, 1)


def _losses_counted_before(state: JobState, loss: Loss, window: timedelta) -> datetime | None:
    """The time up to which losses are unrelated to an outage that begins with this loss.

    Old losses are observed again and again; without this limit an eviction of an hour ago would explain a failure now.
    """
    last_ended = None if state.outage_at is None else state.outage_at + window
    if last_ended is not None and last_ended >= loss.at:
        return state.losses_counted_until
    return max(
        time for time in (state.losses_counted_until, last_ended, loss.at - window) if time is not None
    )


def _with_outage(state: JobState, kind: OutageKind, loss: Loss, now: datetime) -> JobState:
    begun = replace(
        state,
        outage_kind=kind,
        outage_at=loss.at,
        outage_counted_at=now,
        outage_pod_created_at=loss.pod_created_at,
        eviction_at=loss.at if kind is OutageKind.EVICTION else state.eviction_at,
    )
    return _add(begun, kind, 1)


def _add(state: JobState, kind: OutageKind | None, count: int) -> JobState:
    match kind:
        case OutageKind.EVICTION:
            return replace(state, evictions=max(0, state.evictions + count))
        case OutageKind.APPLICATION:
            return replace(state, application_failures=max(0, state.application_failures + count))
        case OutageKind.UNEXPLAINED:
            return replace(state, unexplained=max(0, state.unexplained + count))
        case None:
            return state


def _with_restarts(state: JobState, observation: Observation, window: timedelta, due: int) -> JobState:
    """Account for the operator's own counter: restarts whose losses no replica observed.

    `due` restarts belong to outages that were counted by their losses. A counter that has gone back (a recreated job, a
    restored etcd) only resets the recorded value.
    """
    if (observation.restarts, observation.disrupted_restarts) == (state.restarts, state.disrupted_restarts):
        return state
    restarts = observation.restarts - state.restarts
    disrupted = max(0, observation.disrupted_restarts - state.disrupted_restarts)
    known = replace(
        state,
        restarts=observation.restarts,
        disrupted_restarts=observation.disrupted_restarts,
        restart_expected=due > max(0, restarts),
    )
    unexplained = restarts - due
    if unexplained <= 0 or _is_recent(state, observation.now, window):
        return known
    outages = min(unexplained, _windows_since(state, observation.now, window))
    evictions = min(outages, disrupted)
    kind = OutageKind.EVICTION if evictions == outages else OutageKind.UNEXPLAINED
    # All known losses have been counted: only a new loss can be the cause.
    past = latest_loss_at(state, observation)
    marked = replace(
        known,
        outage_kind=kind,
        outage_at=None,
        outage_pod_created_at=None,
        outage_counted_at=observation.now,
        losses_counted_until=past,
    )
    return _add(_add(marked, OutageKind.EVICTION, evictions), OutageKind.UNEXPLAINED, outages - evictions)


def _is_recent(state: JobState, now: datetime, window: timedelta) -> bool:
    return state.outage_counted_at is not None and now <= state.outage_counted_at + window


def _windows_since(state: JobState, now: datetime, window: timedelta) -> int:
    """How many outages can have happened since the last known one: one wave may restart a job several times."""
    known = (
        state.since if state.outage_counted_at is None else max(state.since, state.outage_counted_at + window)
    )
    return 1 + max(0, (now - known) // window)
