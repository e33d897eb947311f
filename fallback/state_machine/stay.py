"""A job's stay on a tier: how it begins, how it is broken off and taken up again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from holdfast.fallback.state_machine.state import JobState, Phase

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.state_machine.observation import Observation

NOTHING_WAITED = timedelta(0)


def first_stay(seen: Observation, pool: str, rank: int) -> JobState:
    """Return the state of a job that is looked at for the first time.

    Restarts from before are not held against the tier: nobody knows where they happened.
    """
    return JobState(
        uid=seen.uid,
        phase=Phase.WAITING,
        pool=pool,
        rank=rank,
        since=seen.now,
        waiting_since=seen.now,
        restarts=seen.restarts,
        disrupted_restarts=seen.disrupted_restarts,
    )


def new_stay(state: JobState, seen: Observation, *, pool: str, rank: int, returned: bool = False) -> JobState:
    """Return the state of a job that enters a tier now: the tier's clock starts, nothing is counted yet."""
    return replace(
        _afresh(state, seen),
        pool=pool,
        rank=rank,
        since=seen.now,
        waited=NOTHING_WAITED,
        evictions=0,
        application_failures=0,
        unexplained=0,
        outage_kind=None,
        outage_at=None,
        outage_seen_at=None,
        outage_born=None,
        eviction_at=None,
        yields=0,
        head_restarts=0,
        moves=state.moves + 1,
        tried_return_at=None,
        returned=returned,
    )


def same_stay(state: JobState, seen: Observation) -> JobState:
    """Return the state of a job that goes on where it was: what was counted against the tier stays counted."""
    return _afresh(state, seen)


def _afresh(state: JobState, seen: Observation) -> JobState:
    return replace(
        state,
        phase=Phase.WAITING,
        waiting_since=seen.now,
        resumed_at=seen.now,
        restarts=seen.restarts,
        disrupted_restarts=seen.disrupted_restarts,
        restart_due=False,
        losses_until=latest_loss(state, seen),
        purpose=None,
        resume_at=None,
        reasserted=0,
    )


def latest_loss(state: JobState, seen: Observation) -> datetime | None:
    """When the last of all losses known so far was."""
    known = [loss.at for loss in seen.losses]
    if state.losses_until is not None:
        known.append(state.losses_until)
    return max(known, default=None)
