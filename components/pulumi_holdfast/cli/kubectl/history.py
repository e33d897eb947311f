"""A job's history as sentences, from its Events and its recorded state. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from pulumi_holdfast.cli.kubectl.job_view import (
    JobView,
    cost_text,
    duration_text,
    event_time,
    job_view,
    state_of,
    tier_of,
)
from pulumi_holdfast.controller.jobs.actions import EventReason
from pulumi_holdfast.controller.jobs.state import FailbackStage, JobState, OutageKind, Phase, Purpose
from pulumi_holdfast.controller.kube.objects import count, moment, text
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy

#: The API server keeps Events for an hour unless it is configured otherwise; only the record remains after that.
NO_EVENTS: Final = (
    "The cluster has no Event of the controller about it any more: the API server keeps them for an hour."
)

_COUNTED: Final = {
    OutageKind.EVICTION: "an eviction",
    OutageKind.APPLICATION: "a failure of the program",
    OutageKind.UNEXPLAINED: "a restart whose cause no replica of the controller observed",
}
_MOVING: Final = "It is suspended to move to {pool}; it resumes there once none of its pods is left."
_PURPOSES: Final = {
    Purpose.FAILOVER: _MOVING,
    Purpose.FAILBACK: "It is suspended to move back up to {pool}, whose capacity is reserved for it.",
    Purpose.YIELD: "It is suspended for a while, because two jobs each had a part of the nodes that both need.",
    Purpose.RESTART: "It is suspended to restart on {pool}",
}
#: A restart has several causes, which the record does not tell apart: the Event of that moment does.
_RESTART_CAUSES: Final = {
    EventReason.HEAD_LOST: "its head was lost",
    EventReason.PRICE_ABOVE_MAX: "a node there costs more than the tier's maxPrice: it waits until cost limits allow a tier",
    EventReason.STATE_UNREADABLE: "another version of the fallback controller had suspended it",
}
#: Times of Events and of the record are read from the clock one after the other.
_SAME_MOMENT: Final = timedelta(minutes=1)
_STAGES: Final = {
    FailbackStage.RESERVING: "Capacity in {pool} is being reserved for its return; it keeps running until all of it is there.",
    FailbackStage.TAINTING: "All capacity for its return to {pool} is there and is being reserved for it alone.",
    FailbackStage.CHECKPOINTING: "It was asked to write a checkpoint, and then returns to {pool}.",
    FailbackStage.MOVING: "It is moving onto the nodes that are reserved for it in {pool}.",
}


def history_lines(
    job: Json, policy: Policy | NoPolicy, events: Sequence[Json], now: datetime
) -> tuple[str, ...]:
    """Return the history of a job, oldest first, and then its current position."""
    view = job_view(job, policy, events)
    told = sorted(
        events, key=lambda event: (_first(event) is None, str(_first(event)), str(event_time(event)))
    )
    past = [event_line(event) for event in told] or [NO_EVENTS]
    return (*past, "", *_standing(job, view, policy, events, now))


def event_line(event: Json) -> str:
    """Return one Event as a sentence with its time, and how often it was repeated."""
    first, last, times = _first(event), event_time(event), count(event.get("count"), 1)
    when = f"{first:%Y-%m-%d %H:%M:%S}" if first else "at an unknown time"
    repeated = f" ({times} times, last at {last:%H:%M:%S})" if times > 1 and last else ""
    return f"{when}  {text(event.get('reason'))}: {text(event.get('message'))}{repeated}"


def _first(event: Json) -> datetime | None:
    return moment(event.get("firstTimestamp")) or event_time(event)


def _standing(
    job: Json, view: JobView, policy: Policy | NoPolicy, events: Sequence[Json], now: datetime
) -> Iterator[str]:
    state = state_of(job)
    ladder = policy if isinstance(policy, Policy) else None
    if state is None:
        yield f"{view.reference} is on no tier: {view.note or 'the fallback controller has not recorded it'}."
        return
    yield _position(view, state, now)
    if ladder is not None:
        yield from _failures(view, state, ladder)
    yield from _phase(state, ladder, events, now)
    if state.failback is not None:
        yield _STAGES[state.failback.stage].format(pool=state.failback.pool)
    if view.next_limit is not None and view.next_limit_at is not None:
        left = duration_text(view.next_limit_at - now)
        yield f"Unless something else happens, it {view.next_limit} at {view.next_limit_at:%Y-%m-%d %H:%M:%S} (in {left})."
    yield from _spent(view, state)
    yield from _pace(state)
    if view.note:
        yield f"It {view.note}."


def _position(view: JobView, state: JobState, now: datetime) -> str:
    place = (
        "a pool that is no tier of its ladder" if view.tier is None else f"tier {view.tier} of {view.tiers}"
    )
    moves = {0: "it has never moved", 1: "it has moved once"}.get(
        state.moves, f"it has moved {state.moves} times"
    )
    return (
        f"{view.reference} is {state.phase.value} on {state.pool}, {place}, since {state.since:%Y-%m-%d %H:%M:%S} "
        f"({duration_text(now - state.since)}); {moves}."
    )


def _failures(view: JobView, state: JobState, policy: Policy) -> Iterator[str]:
    tier = tier_of(state, policy)
    if tier is None:
        return
    limit = (
        "no number of failures moves the job on"
        if view.max_failures is None
        else f"at {view.max_failures} the job moves on"
    )
    last = ""
    if state.outage_kind is not None and state.outage_counted_at is not None:
        last = f"; the last was {_COUNTED[state.outage_kind]}, counted at {state.outage_counted_at:%Y-%m-%d %H:%M:%S}"
    yield f"Failures on {state.pool}: {view.failures}; {limit}{last}."


def _phase(state: JobState, ladder: Policy | None, events: Sequence[Json], now: datetime) -> Iterator[str]:
    if state.phase is Phase.WAITING and state.waiting_since is not None:
        waited = duration_text(now - state.waiting_since + state.waited)
        yield f"Not every pod has a node: it has waited for {waited}."
    if state.phase is Phase.SUSPENDING and state.purpose is Purpose.RESTART:
        yield f"{_PURPOSES[state.purpose].format(pool=state.pool)}{_restart_cause(state, events)}."
    elif state.phase is Phase.SUSPENDING and state.purpose is not None:
        yield _PURPOSES[state.purpose].format(pool=state.pool)
    if state.phase is Phase.PAUSED:
        yield _pause(state, ladder)
    if state.phase is Phase.AWAY:
        yield "It is suspended here: a copy of it runs, or waits for nodes, in another cluster."
    if state.phase is Phase.STOPPED:
        yield "It is suspended, and the controller does not resume it. `kubectl holdfast resume` does."
    if state.phase is Phase.GIVEN_UP:
        yield "It was given up: fix the cause, then run `kubectl holdfast resume`."
    if state.phase is Phase.REFUSED:
        yield f"It is suspended, because it could not run to its end: {state.refusal}"
        yield "It is resumed when that is fixed; `kubectl holdfast resume` lets it run as it is."


def _restart_cause(state: JobState, events: Sequence[Json]) -> str:
    """Return why a job restarts on its tier; empty where no Event of that moment says so."""
    since = state.suspended_at
    told = [
        (at, _RESTART_CAUSES[EventReason(reason)])
        for event in events
        if (reason := text(event.get("reason"))) in _RESTART_CAUSES
        if (at := event_time(event)) is not None and since is not None and at >= since - _SAME_MOMENT
    ]
    return f", because {max(told)[1]}" if told else ""


def _pause(state: JobState, ladder: Policy | None) -> str:
    """Return why a job is paused: it yielded its nodes, or a node of its tier costs more than `maxPrice`."""
    if state.purpose is None:
        return "It is suspended for a while."
    if state.purpose is not Purpose.YIELD:
        return f"It is suspended because a node of {state.pool} costs more than its tier's maxPrice, until cost limits allow a tier."
    tier = tier_of(state, ladder)
    is_capped = tier is not None and tier.max_price is not None
    price = f" It stays suspended while a node of {state.pool} costs more than the tier's maxPrice."
    return f"{_PURPOSES[Purpose.YIELD]}{price if is_capped else ''}"


def _spent(view: JobView, state: JobState) -> Iterator[str]:
    if state.ledger is None:
        return
    worked, lost, waited = map(duration_text, (state.ledger.worked, state.ledger.lost, state.ledger.waited))
    yield f"Until its last record it worked for {worked}, repeated or restarted for {lost}, waited for {waited}: {cost_text(view)}."


def _pace(state: JobState) -> Iterator[str]:
    if state.pace is None:
        return
    done = duration_text(state.pace.work_done)
    progress = "" if state.pace.progress is None else f", by its own report {state.pace.progress:.0%}"
    yield f"Of its work, {done} was done when it was last recorded{progress}; interruptions so far: {state.pace.interruptions}."
    if state.pace.is_late:
        yield "It will miss its deadline, whatever is done."
