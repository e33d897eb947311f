"""Failback: first the capacity, then the taint, then a checkpoint, and only then the running job is touched."""

from dataclasses import replace
from datetime import datetime

import pytest

from pulumi_holdfast.controller.jobs.actions import (
    CreatePlaceholders,
    DeletePlaceholders,
    ReleaseReservation,
    RequestCheckpoint,
    Suspend,
    TaintReservedNodes,
    WriteState,
)
from pulumi_holdfast.controller.jobs.observation import ContendingGang, JobOutcome, Observation, PoolStatus
from pulumi_holdfast.controller.jobs.pod_shapes import PlacementRequirements, PodShape
from pulumi_holdfast.controller.jobs.state import FailbackAttempt, FailbackStage, JobState, Phase, Purpose
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.controller.state_machine.failback import (
    CHECKPOINT_TIMEOUT,
    ReservationQueue,
    failback_due_at,
)
from pulumi_holdfast.ladder.ladder import DeclaredFacts, MachineResources
from tests.support.builders.job_states import (
    HOUR,
    LAST,
    LOWER,
    MINUTE,
    PODS,
    SECOND,
    SPOT,
    T0,
    failing_back,
    kinds,
    loss,
    observed,
    observed_suspended,
    only,
    policy,
    reasons,
    reserved,
    running,
    state_of,
    tier,
    waiting,
)

UP = policy(return_after=HOUR, hold_timeout=10 * MINUTE)
LOW = running(pool="on-demand", rank=2)
ON_DEMAND = observed(pool="on-demand")


def job_failing_back(stage: FailbackStage = FailbackStage.RESERVING, pool: str = "a-spot") -> JobState:
    return replace(LOW, failback=failing_back(stage, pool))


def test_a_failback_starts_after_return_after_with_the_best_tiers_capacity() -> None:
    decision = decide(LOW, replace(ON_DEMAND, now=T0 + 900 * HOUR), policy())
    assert not decision.actions, "it is off unless it is set"
    decision = decide(LOW, replace(ON_DEMAND, now=T0 - SECOND), UP)
    assert (decision.actions, decision.requeue_at) == ((), T0)
    assert not decide(running(), observed(now=T0 + 9 * HOUR), UP).actions
    decision = decide(LOW, ON_DEMAND, UP)
    assert kinds(decision) == [WriteState, CreatePlaceholders]
    hold = only(decision, CreatePlaceholders)
    assert (hold.pool, hold.shapes) == ("a-spot", ON_DEMAND.shapes)
    assert decision.requeue_at == T0 + 10 * MINUTE


@pytest.mark.parametrize(
    "trouble",
    [
        replace(ON_DEMAND, pods_placed=3),
        replace(ON_DEMAND, can_be_suspended=False),
        replace(ON_DEMAND, created=T0 - 50 * HOUR),
    ],
    ids=["it waits for nodes", "it cannot be suspended", "its deadline is near"],
)
def test_a_failback_does_not_start_when(trouble: Observation) -> None:
    ladder = replace(UP, deadline=50 * HOUR)
    decision = decide(LOW, trouble, ladder)
    assert CreatePlaceholders not in kinds(decision), "the move could not be made, or would not be worth it"


def test_placeholders_are_created_until_each_pod_has_one() -> None:
    for there in (None, reserved(pods=2, placed=2, tainted=0)):
        decision = decide(job_failing_back(), replace(ON_DEMAND, reservation=there), UP)
        assert kinds(decision) == [CreatePlaceholders]
    decision = decide(job_failing_back(), replace(ON_DEMAND, reservation=reserved(placed=3, tainted=0)), UP)
    assert not decision.actions
    mixed = (PodShape(count=1, requests={}), PodShape(count=PODS, requests={}))
    decision = decide(
        job_failing_back(), replace(ON_DEMAND, shapes=mixed, reservation=reserved(tainted=0)), UP
    )
    assert kinds(decision) == [CreatePlaceholders]


def test_reserved_nodes_are_tainted_once_all_of_them_exist() -> None:
    decision = decide(job_failing_back(), replace(ON_DEMAND, reservation=reserved(tainted=0)), UP)
    assert kinds(decision) == [WriteState, TaintReservedNodes]
    again = decide(decision.state, replace(ON_DEMAND, reservation=reserved(tainted=2)), UP)
    assert kinds(again) == [TaintReservedNodes], "until every node bears it"


def test_a_job_is_moved_once_its_reservation_is_complete() -> None:
    decision = decide(
        job_failing_back(FailbackStage.TAINTING), replace(ON_DEMAND, reservation=reserved()), UP
    )
    suspend = only(decision, Suspend)
    assert (suspend.pool, suspend.state.purpose, suspend.tolerate_reservation) == (
        "a-spot",
        Purpose.FAILBACK,
        True,
    )
    assert ReleaseReservation not in kinds(decision)


#: A job that checkpoints on request, whose reservation is complete; the decision that asks it; and its answer.
LISTENING = replace(ON_DEMAND, reservation=reserved(), checkpoints_on_request=True)
ASKED = decide(job_failing_back(FailbackStage.TAINTING), LISTENING, UP)
ANSWERED = replace(LISTENING, checkpoint_requested_at=T0, checkpointed_at=T0)


def test_a_job_that_checkpoints_on_request_is_moved_when_it_answers_or_the_timeout_passes() -> None:
    assert only(ASKED, RequestCheckpoint).at == T0
    waits = decide(ASKED.state, replace(LISTENING, checkpoint_requested_at=T0), UP)
    assert (waits.actions, waits.requeue_at) == ((), T0 + CHECKPOINT_TIMEOUT)
    answered = replace(ANSWERED, checkpointed_at=T0 + SECOND, now=T0 + 2 * SECOND)
    assert only(decide(ASKED.state, answered, UP), Suspend).pool == "a-spot"
    again = decide(ASKED.state, replace(LISTENING, now=T0 + SECOND), UP)
    assert only(again, RequestCheckpoint).at == T0
    late = decide(ASKED.state, replace(LISTENING, now=T0 + CHECKPOINT_TIMEOUT), UP)
    assert Suspend in kinds(late)


def test_a_job_that_cannot_be_suspended_just_now_is_moved_when_it_can() -> None:
    blocked = decide(ASKED.state, replace(ANSWERED, can_be_suspended=False), UP)
    assert not blocked.actions, "its operator would ignore it"
    assert Suspend in kinds(decide(ASKED.state, ANSWERED, UP))


def test_a_reservation_of_a_job_that_can_neither_move_up_nor_down_ends_after_its_timeout() -> None:
    attempt = failing_back()
    blocked = running(pool="b-spot", rank=1, evictions=3, failback=attempt)
    for waited, expected in ((9 * MINUTE, attempt), (10 * MINUTE, None)):
        seen = observed(pool="b-spot", now=T0 + waited, can_be_suspended=False)
        assert state_of(decide(blocked, seen, UP)).failback == expected


def test_an_old_checkpoint_is_no_answer() -> None:
    old = replace(ANSWERED, checkpointed_at=T0 - HOUR)
    assert not decide(ASKED.state, old, UP).actions


def test_after_the_hold_timeout_the_reservation_is_released_and_the_next_tier_is_tried() -> None:
    late = replace(ON_DEMAND, reservation=reserved(placed=3, tainted=0), now=T0 + 10 * MINUTE)
    decision = decide(job_failing_back(), late, UP)
    assert kinds(decision) == [WriteState, ReleaseReservation]
    state = state_of(decision)
    assert state.failback is not None
    assert state.failback.pool == "b-spot"
    assert kinds(decide(state, replace(ON_DEMAND, now=late.now), UP)) == [CreatePlaceholders]
    late = replace(ON_DEMAND, reservation=reserved("b-spot", placed=3, tainted=0), now=T0 + 10 * MINUTE)
    decision = decide(job_failing_back(pool="b-spot"), late, UP)
    assert kinds(decision) == [WriteState, ReleaseReservation]
    assert state_of(decision).failback is None
    assert decision.requeue_at == late.now + HOUR
    stuck = replace(ON_DEMAND, reservation=reserved(), can_be_suspended=False, now=T0 + 10 * MINUTE)
    for stage in (FailbackStage.TAINTING, FailbackStage.CHECKPOINTING):
        assert ReleaseReservation in kinds(
            decide(job_failing_back(stage, "b-spot"), replace(stuck, reservation=reserved("b-spot")), UP)
        )


def test_a_lost_reserved_node_is_requested_again() -> None:
    decision = decide(
        job_failing_back(FailbackStage.CHECKPOINTING),
        replace(ON_DEMAND, reservation=reserved(placed=3, tainted=3)),
        UP,
    )
    state = state_of(decision)
    assert state.failback is not None
    assert state.failback.stage is FailbackStage.RESERVING


def test_a_failback_ends_when_return_after_is_removed() -> None:
    for edited in (policy(), replace(UP, tiers=(LOWER, LAST)), replace(UP, tiers=(LAST, SPOT))):
        decision = decide(job_failing_back(), replace(ON_DEMAND, reservation=reserved()), edited)
        assert kinds(decision) == [WriteState, ReleaseReservation], f"{edited} has no such better tier"


def test_a_tier_whose_pool_or_limits_are_insufficient_is_skipped() -> None:
    big = MachineResources(cpu=8000, memory=2**34)
    small = replace(SPOT, facts=DeclaredFacts(machine=big, max_nodes=1))
    ladder = replace(UP, tiers=(small, LOWER, LAST))
    assert only(decide(LOW, ON_DEMAND, ladder), CreatePlaceholders).pool == "b-spot"
    full = replace(ON_DEMAND, pools={"a-spot": PoolStatus(nodes_in_use=4, max_nodes=4)})
    assert only(decide(LOW, full, UP), CreatePlaceholders).pool == "b-spot"
    missing = replace(ON_DEMAND, pools={"a-spot": PoolStatus(exists=False)})
    assert only(decide(LOW, missing, UP), CreatePlaceholders).pool == "b-spot"


def test_without_sufficient_limits_an_event_is_recorded_and_the_failback_retried() -> None:
    full = {name: PoolStatus(nodes_in_use=4, max_nodes=4) for name in ("a-spot", "b-spot")}
    decision = decide(LOW, replace(ON_DEMAND, pools=full), UP)
    assert (kinds(decision), reasons(decision)) == ([WriteState], ["CannotFailBack"])
    assert decision.requeue_at == T0 + HOUR


def test_a_job_whose_placement_placeholders_cannot_have_stays_where_it_is() -> None:
    exclusive = PlacementRequirements(
        selector={}, affinity={}, spread=(), labels={}, problem="JobSet places its pods"
    )
    shapes = (PodShape(count=PODS, requests={}, placement=exclusive),)
    decision = decide(LOW, replace(ON_DEMAND, shapes=shapes), UP)
    assert (kinds(decision), reasons(decision)) == ([WriteState], ["CannotFailBack"])
    assert "because JobSet places its pods" in decision.events[0].message
    assert decision.requeue_at == T0 + HOUR


def test_a_failover_uses_only_a_complete_reservation() -> None:
    middle = running(pool="b-spot", rank=1, evictions=3, failback=failing_back())
    decision = decide(middle, observed(pool="b-spot", reservation=reserved(placed=2, tainted=0)), UP)
    assert kinds(decision) == [Suspend, ReleaseReservation], "it cannot wait for the rest"
    assert only(decision, Suspend).pool == "on-demand"
    middle = replace(middle, failback=failing_back(FailbackStage.CHECKPOINTING))
    decision = decide(middle, observed(pool="b-spot", reservation=reserved()), UP)
    assert only(decision, Suspend).pool == "a-spot"


def test_taints_stay_until_all_pods_are_bound() -> None:
    arrived = waiting(failback=failing_back(FailbackStage.MOVING), entered_by_failback=True)
    early = decide(arrived, observed(pods_placed=3, reservation=reserved()), UP)
    assert kinds(early) == [DeletePlaceholders]
    kept = decide(arrived, observed(pods_placed=3, reservation=reserved(pods=0, placed=0, tainted=0)), UP)
    assert not kept.actions, "a stranger could still take the last node"
    bound = decide(arrived, observed(reservation=reserved(pods=0, placed=0, tainted=0)), UP)
    assert kinds(bound) == [WriteState, ReleaseReservation]


def test_short_failbacks_double_the_wait_until_one_lasts() -> None:
    back = running(entered_by_failback=True, evictions=3, since=T0 - HOUR / 2)
    thrown_out = state_of(decide(back, observed(), UP))
    assert thrown_out.short_failbacks == 1
    assert (
        failback_due_at(replace(LOW, short_failbacks=thrown_out.short_failbacks), UP) == T0 - HOUR + 2 * HOUR
    )
    assert failback_due_at(replace(LOW, short_failbacks=99), UP) == T0 - HOUR + 16 * HOUR
    back = running(entered_by_failback=True, short_failbacks=3, evictions=3, since=T0 - 2 * HOUR)
    assert state_of(decide(back, observed(), UP)).short_failbacks == 0
    assert state_of(decide(running(evictions=3), observed(), UP)).short_failbacks == 0


def test_a_job_that_ends_or_is_suspended_leaves_no_reservation() -> None:
    decision = decide(
        job_failing_back(), replace(ON_DEMAND, outcome=JobOutcome.COMPLETED, reservation=reserved()), UP
    )
    assert kinds(decision) == [WriteState, ReleaseReservation]
    stopped = observed_suspended(pool="on-demand", reservation=reserved())
    decision = decide(job_failing_back(), stopped, UP)
    assert (kinds(decision), state_of(decision).phase) == ([WriteState, ReleaseReservation], Phase.STOPPED)


def test_an_eviction_during_a_failback_is_counted() -> None:
    lost = replace(
        ON_DEMAND, pods_placed=3, losses=(loss(pool="on-demand"),), reservation=reserved(placed=2, tainted=0)
    )
    state = state_of(decide(job_failing_back(), lost, UP))
    assert (state.evictions, state.failback) == (1, job_failing_back().failback)


def test_a_job_fails_back_from_a_middle_tier() -> None:
    ladder = policy(tiers=(SPOT, LOWER, tier("c-spot", max_failures=-1)), return_after=HOUR)
    decision = decide(running(pool="b-spot", rank=1), observed(pool="b-spot"), ladder)
    assert only(decision, CreatePlaceholders).pool == "a-spot"


LADDER = policy(tiers=(SPOT, LAST), return_after=HOUR, hold_timeout=10 * MINUTE)
RETURNING = running(pool="on-demand", rank=1, since=T0 - 2 * HOUR)
RESERVING = replace(
    RETURNING, failback=FailbackAttempt(pool="a-spot", stage=FailbackStage.RESERVING, since=T0 - MINUTE)
)
OLDER = ContendingGang(created=T0 - 2 * HOUR, uid="older")
YOUNGER = ContendingGang(created=T0, uid="younger")


def behind(gang: ContendingGang) -> dict[str, PoolStatus]:
    """The pool while another job reserves capacity in it."""
    return {"a-spot": PoolStatus(reserving=gang)}


def test_two_gangs_of_four_with_six_free_nodes_return_one_after_the_other() -> None:
    queue, moved = ReservationQueue[str](), dict[str, datetime]()
    states = {uid: replace(RETURNING, uid=uid) for uid in ("first", "second")}
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
            decision = decide(states[uid], replace(seen, pools=pools), LADDER)
            states[uid] = state_of(decision)
            if "FailbackMoving" in reasons(decision):
                moved[uid] = now
                break
    assert list(moved) == ["first"], "with three nodes each neither would return, for 25 hours"
    assert moved["first"] < T0 + 10 * MINUTE


def test_a_job_does_not_start_a_reservation_beside_an_older_one() -> None:
    waits = decide(RETURNING, observed(pool="on-demand", pools=behind(OLDER)), LADDER)
    (said,) = waits.events
    assert (said.reason, said.is_standing) == ("CannotFailBack", True)
    assert "other jobs reserve capacity first in a-spot" in said.message
    assert waits.requeue_at is not None
    assert T0 + MINUTE <= waits.requeue_at <= T0 + 2 * MINUTE
    starts = decide(RETURNING, observed(pool="on-demand", pools=behind(YOUNGER)), LADDER)
    assert "FailbackStarted" in reasons(starts)


def test_a_job_releases_what_is_reserved_for_it_to_an_older_one() -> None:
    half = reserved(placed=2, tainted=0)
    yields = decide(RESERVING, observed(pool="on-demand", reservation=half, pools=behind(OLDER)), LADDER)
    assert reasons(yields) == ["FailbackEnded"]
    assert "ReleaseReservation" in [type(action).__name__ for action in yields.actions]
    assert state_of(yields).last_failback_at is None
    keeps = decide(RESERVING, observed(pool="on-demand", reservation=half, pools=behind(YOUNGER)), LADDER)
    assert reasons(keeps) == []
    whole = decide(RESERVING, observed(pool="on-demand", reservation=reserved(), pools=behind(OLDER)), LADDER)
    assert "FailbackMoving" in reasons(whole)


def test_the_share_of_a_pool_decides_before_age() -> None:
    fewer = replace(YOUNGER, share=3)
    beside = {"a-spot": PoolStatus(reserving=fewer, share=4)}
    waits = decide(RETURNING, observed(pool="on-demand", pools=beside), LADDER)
    assert reasons(waits) == ["CannotFailBack"]
    beside = {"a-spot": PoolStatus(reserving=replace(OLDER, share=4), share=3)}
    starts = decide(RETURNING, observed(pool="on-demand", pools=beside), LADDER)
    assert "FailbackStarted" in reasons(starts)


def test_the_queue_returns_the_job_of_the_namespace_with_the_smallest_share() -> None:
    queue = ReservationQueue[str]()
    for uid, hours in (("old", 3), ("young", 1), ("own", 2)):
        seen = observed(pool="on-demand", uid=uid, created=T0 - hours * HOUR)
        found = queue.update(uid, RESERVING, seen, lambda job, _: {"old": 5, "young": 2}.get(job, 0))
    assert found == {"a-spot": ContendingGang(created=T0 - HOUR, uid="young", share=2)}


def test_the_queue_returns_the_oldest_of_the_others_until_its_reservation_is_whole() -> None:
    queue = ReservationQueue[str]()
    old = observed(pool="on-demand", uid="old", created=T0 - 3 * HOUR, reservation=reserved(placed=2))
    young = observed(pool="on-demand", uid="young", created=T0 - HOUR)
    assert queue.update("old", RESERVING, old) == {}
    expected = ContendingGang(created=T0 - 3 * HOUR, uid="old")
    assert queue.update("young", RESERVING, young) == {"a-spot": expected}
    queue.update("old", RESERVING, replace(old, reservation=reserved()))
    assert queue.update("young", RESERVING, young) == {}
    queue.update("old", RESERVING, old)
    queue.forget("old")
    assert queue.update("young", RESERVING, young) == {}
