"""Jobs that return at the same time reserve capacity one after the other, the oldest first."""

from dataclasses import replace
from datetime import datetime

from pulumi_holdfast.controller.reservations.reservation_queue import ReservationQueue
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.controller.state_machine.observation import ContendingGang, PoolStatus
from pulumi_holdfast.controller.state_machine.state import FailbackAttempt, FailbackStage
from tests.support.builders.job_states import (
    HOUR,
    LAST,
    MINUTE,
    PODS,
    SPOT,
    T0,
    observed,
    policy,
    reasons,
    reserved,
    running,
    state_of,
)

UP = policy(tiers=(SPOT, LAST), return_after=HOUR, hold_timeout=10 * MINUTE)
LOW = running(pool="on-demand", rank=1, since=T0 - 2 * HOUR)
RESERVING = replace(
    LOW, failback=FailbackAttempt(pool="a-spot", stage=FailbackStage.RESERVING, since=T0 - MINUTE)
)
OLDER = ContendingGang(created=T0 - 2 * HOUR, uid="older")
YOUNGER = ContendingGang(created=T0, uid="younger")


def behind(gang: ContendingGang) -> dict[str, PoolStatus]:
    """The pool while another job reserves capacity in it."""
    return {"a-spot": PoolStatus(reserving=gang)}


def test_two_gangs_of_four_with_six_free_nodes_return_one_after_the_other() -> None:
    queue, moved = ReservationQueue[str](), dict[str, datetime]()
    states = {uid: replace(LOW, uid=uid) for uid in ("first", "second")}
    for now in (T0 + minutes * MINUTE for minutes in range(25 * 60)):
        holders = [uid for uid, state in states.items() if state.failback is not None and uid not in moved]
        # The scheduler binds the placeholders of both in turn.
        share = min(PODS, (6 - PODS * len(moved)) // max(1, len(holders)))
        for place, uid in enumerate(each for each in states if each not in moved):
            held = reserved(placed=share, tainted=share) if uid in holders else None
            created = T0 - 2 * HOUR + place * MINUTE
            seen = observed(uid=uid, created=created, now=now, pool="on-demand", reservation=held)
            others = queue.update(uid, states[uid], seen)
            pools = {pool: PoolStatus(reserving=gang) for pool, gang in others.items()}
            decision = decide(states[uid], replace(seen, pools=pools), UP)
            states[uid] = state_of(decision)
            if "FailbackMoving" in reasons(decision):
                moved[uid] = now
                break
    assert list(moved) == ["first"], "with three nodes each neither would return, for 25 hours"
    assert moved["first"] < T0 + 10 * MINUTE, "at its first attempt"


def test_a_job_does_not_start_a_reservation_beside_an_older_one() -> None:
    waits = decide(LOW, observed(pool="on-demand", pools=behind(OLDER)), UP)
    assert reasons(waits) == [], "it is not its turn"
    assert waits.requeue_at is not None, "it is requeued"
    assert T0 + MINUTE <= waits.requeue_at <= T0 + 2 * MINUTE, "soon, and not all jobs at once"
    starts = decide(LOW, observed(pool="on-demand", pools=behind(YOUNGER)), UP)
    assert "FailbackStarted" in reasons(starts), "the older job has the better claim"


def test_a_job_releases_what_is_reserved_for_it_to_an_older_one() -> None:
    half = reserved(placed=2, tainted=0)
    yields = decide(RESERVING, observed(pool="on-demand", reservation=half, pools=behind(OLDER)), UP)
    assert reasons(yields) == ["FailbackEnded"], "two halves help neither"
    assert "ReleaseReservation" in [type(action).__name__ for action in yields.actions], "at once"
    assert state_of(yields).last_failback_at is None, "its own turn comes without another returnAfter"
    keeps = decide(RESERVING, observed(pool="on-demand", reservation=half, pools=behind(YOUNGER)), UP)
    assert reasons(keeps) == [], "the younger job releases its own"
    whole = decide(RESERVING, observed(pool="on-demand", reservation=reserved(), pools=behind(OLDER)), UP)
    assert "FailbackMoving" in reasons(whole), "all of it is used"


def test_the_queue_returns_the_oldest_of_the_others_until_its_reservation_is_whole() -> None:
    queue = ReservationQueue[str]()
    old = observed(pool="on-demand", uid="old", created=T0 - 3 * HOUR, reservation=reserved(placed=2))
    young = observed(pool="on-demand", uid="young", created=T0 - HOUR)
    assert queue.update("old", RESERVING, old) == {}, "there is no other"
    expected = ContendingGang(created=T0 - 3 * HOUR, uid="old")
    assert queue.update("young", RESERVING, young) == {"a-spot": expected}, "the older one"
    queue.update("old", RESERVING, replace(old, reservation=reserved()))
    assert queue.update("young", RESERVING, young) == {}, "a whole reservation blocks no other"
    queue.update("old", RESERVING, old)
    queue.forget("old")
    assert queue.update("young", RESERVING, young) == {}, "nor does a deleted job's"
