"""Clocks that jump, forward or back, end no wait early, make none last for ever, and count nothing twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.fallback.state_machine.actions import Suspend, WriteState
from holdfast.fallback.state_machine.decision import LONGEST_PAUSE, TOLERANCE, decide, shift_times
from holdfast.fallback.state_machine.state import FailbackAttempt, FailbackStage, Phase
from tests.support.ladder import (
    HOUR,
    MINUTE,
    SECOND,
    T0,
    kinds,
    loss,
    policy,
    running,
    seen,
    seen_suspended,
    state_of,
    waiting,
)

if TYPE_CHECKING:
    from datetime import timedelta


def test_a_jump_forward_does_not_end_a_wait() -> None:
    jumped = seen(pods_placed=0, now=T0 + HOUR + MINUTE, clock_jump=HOUR)
    decision = decide(waiting(), jumped, policy())
    assert Suspend not in kinds(decision), "one minute has passed, whatever the clock says"
    assert kinds(decision) == [WriteState], "the shifted times are kept, as the jump is told only once"
    assert decision.requeue_at == T0 + HOUR + 15 * MINUTE, "and the rest of the wait goes on"


def test_a_jump_back_does_not_make_a_wait_longer() -> None:
    jumped = seen(pods_placed=0, now=T0 - HOUR + MINUTE, clock_jump=-HOUR)
    assert decide(waiting(), jumped, policy()).requeue_at == T0 - HOUR + 15 * MINUTE, "14 minutes are left"


def test_a_time_ahead_of_the_clock_is_taken_for_now() -> None:
    decision = decide(
        waiting(waiting_since=T0 + 9 * HOUR, since=T0 + 9 * HOUR), seen(pods_placed=0), policy()
    )
    assert state_of(decision).waiting_since == T0, "another machine's clock was nine hours ahead"
    assert decision.requeue_at == T0 + 15 * MINUTE, "and nobody waits for it to come round"


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_loss_is_not_counted_twice_because_the_clock_jumped(jump: timedelta) -> None:
    counted = state_of(decide(running(), seen(losses=(loss(),)), policy()))
    after = seen(losses=(loss(),), now=T0 + jump + MINUTE, clock_jump=jump)
    assert state_of(decide(counted, after, policy())).evictions == 1, "losses have a clock of their own"


def test_a_clock_that_is_steered_changes_nothing() -> None:
    steered = seen(now=T0 + SECOND, clock_jump=SECOND)
    assert not decide(running(), steered, policy()).actions, (
        "a write for every second of NTP would be no help"
    )


def test_a_pause_lies_ahead_by_right_but_not_by_more_than_a_pause_is_long() -> None:
    paused = running(phase=Phase.PAUSED, resume_at=T0 + MINUTE)
    assert shift_times(paused, seen_suspended()) == paused, "it ends in a minute"
    ahead = running(phase=Phase.PAUSED, resume_at=T0 + 9 * HOUR)
    assert shift_times(ahead, seen_suspended()).resume_at == T0 + LONGEST_PAUSE, "a clock was wrong"


def test_every_time_of_ours_is_shifted() -> None:
    times = running(
        waiting_since=T0,
        outage_counted_at=T0,
        resumed_at=T0,
        suspended_at=T0,
        resume_at=T0,
        last_failback_at=T0,
        failback=FailbackAttempt(pool="a-spot", stage=FailbackStage.CHECKPOINTING, since=T0, requested_at=T0),
        outage_at=T0,
        losses_counted_until=T0,
    )
    jump = 2 * TOLERANCE
    moved = shift_times(times, seen(now=T0 + HOUR, clock_jump=jump))
    ours = (
        moved.waiting_since,
        moved.outage_counted_at,
        moved.resumed_at,
        moved.suspended_at,
        moved.resume_at,
        moved.last_failback_at,
    )
    assert set(ours) == {T0 + jump}, "each was read from the clock that jumped"
    assert moved.failback is not None, "the attempt goes on"
    assert (moved.failback.since, moved.failback.requested_at) == (T0 + jump, T0 + jump), "by the same clock"
    assert (moved.outage_at, moved.losses_counted_until) == (T0, T0), "these came with the losses"
