"""Suspended and finished jobs: a move is suspended, waits for its pods, deletes child Jobs and is resumed."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from pulumi_holdfast.controller.jobs.actions import (
    DeleteChildren,
    DeletePlaceholders,
    EventReason,
    ForceDelete,
    Recreate,
    Resume,
    Suspend,
    WriteState,
)
from pulumi_holdfast.controller.jobs.observation import Cause, JobOutcome, Observation, PoolStatus
from pulumi_holdfast.controller.jobs.state import FailbackStage, JobState, Phase, Purpose
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.controller.state_machine.failover import SLOW_SUSPENSION_AFTER
from pulumi_holdfast.controller.state_machine.phases import MAX_RECREATIONS, MAX_RESUSPENSIONS
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy
from tests.support.builders.job_states import (
    HOUR,
    LAST,
    MINUTE,
    SECOND,
    SPOT,
    T0,
    UID,
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
    suspending,
    tier,
    waiting,
)


def test_a_job_is_resumed_on_its_next_tier_only_once_its_pods_are_gone() -> None:
    decision = decide(suspending(), observed_suspended(now=T0 + MINUTE), policy())
    resume = only(decision, Resume)
    assert resume.pool == "b-spot"
    assert (resume.state.phase, resume.state.since) == (Phase.WAITING, T0 + MINUTE)
    assert resume.state.moves == 1
    decision = decide(suspending(), observed_suspended(pods_remaining=1), policy())
    assert not decision.actions, "inactive is not gone: two gangs would write one checkpoint"
    decision = decide(suspending(), observed_suspended(is_suspension_complete=False), policy())
    assert not decision.actions, "the operator would create what it was about to delete"


def test_old_child_jobs_are_deleted_between_the_end_of_their_pods_and_the_resumption() -> None:
    decision = decide(suspending(), observed_suspended(outdated_children=2), policy())
    assert kinds(decision) == [DeleteChildren]
    decision = decide(suspending(), observed_suspended(outdated_children=2, pods_remaining=1), policy())
    assert not decision.actions


def test_a_job_is_resumed_before_its_child_jobs_are_recreated_once_its_operator_has_observed_the_suspension() -> (
    None
):
    moving = suspending(operator_status="before")
    recreating = observed_suspended(
        is_suspension_complete=False, children_create_no_pods=True, operator_status="after"
    )
    assert only(decide(moving, recreating, policy()), Resume).recreates_children
    decision = decide(moving, replace(recreating, outdated_children=2), policy())
    assert kinds(decision) == [DeleteChildren, Resume]
    for waits, why in (
        (replace(recreating, pods_remaining=1), "two gangs would write one checkpoint"),
        (replace(recreating, children_create_no_pods=False), "a child Job may get another pod"),
        (replace(recreating, operator_status="before"), "a restart may create them from the old template"),
    ):
        assert not decide(moving, waits, policy()).actions, why
    assert not decide(suspending(), recreating, policy()).actions


@pytest.mark.parametrize(
    "moving",
    [
        suspending(operator_status="before", pool="a-spot", rank=0, purpose=Purpose.YIELD),
        suspending(operator_status="before", pool="west/a-spot"),
    ],
    ids=["a pause", "a move to another cluster"],
)
def test_a_job_that_stays_suspended_waits_until_its_child_jobs_are_recreated(moving: JobState) -> None:
    recreating = observed_suspended(
        pool="a-spot", is_suspension_complete=False, children_create_no_pods=True, operator_status="after"
    )
    west = policy(tiers=(SPOT, tier(pool="west/a-spot"), LAST))
    decision = decide(moving, recreating, west)
    assert not decision.actions
    decision = decide(moving, replace(recreating, is_suspension_complete=True, outdated_children=1), west)
    assert kinds(decision) == [DeleteChildren]


def test_each_suspension_records_what_the_operator_has_reported() -> None:
    lost = tuple(loss(T0 + number * HOUR, pod=str(number)) for number in range(3))
    first = only(decide(running(), observed(losses=lost, operator_status="1"), policy()), Suspend)
    edited = observed_suspended(pool="a-spot", operator_status="2")
    second = only(decide(suspending(operator_status="1"), edited, policy()), Suspend)
    resumed = observed(pool="b-spot", operator_status="2")
    third = only(decide(suspending(operator_status="1"), resumed, policy()), Suspend)
    recorded = [each.state.operator_status for each in (first, second, third)]
    assert recorded == ["1", "2", "2"], "each has a template that the operator must observe"
    gone = observed_suspended(operator_status="2")
    running_again = only(decide(suspending(operator_status="1"), gone, policy()), Resume).state
    assert not running_again.operator_status


def test_a_template_of_another_pool_is_corrected_first() -> None:
    decision = decide(suspending(), observed_suspended(pool="a-spot"), policy())
    assert only(decision, Suspend).pool == "b-spot"


def test_pods_that_do_not_terminate_are_reported_and_those_of_lost_machines_deleted() -> None:
    late = observed_suspended(pods_remaining=1, now=T0 + SLOW_SUSPENSION_AFTER)
    decision = decide(suspending(), late, policy())
    assert (kinds(decision), reasons(decision)) == ([], ["SlowSuspension"])
    assert "1 pods and 0 child Jobs are left" in decision.events[0].message
    late = observed_suspended(is_suspension_complete=False, now=T0 + SLOW_SUSPENSION_AFTER)
    (event,) = decide(suspending(), late, policy()).events
    assert "not finished suspending it" in event.message
    early = decide(suspending(), observed_suspended(pods_remaining=1), policy())
    assert early.requeue_at == T0 + SLOW_SUSPENSION_AFTER
    decision = decide(suspending(), observed_suspended(pods_remaining=1, dead_pods=("train-3",)), policy())
    assert only(decision, ForceDelete).pods == ("train-3",)


def test_losses_during_a_suspension_are_not_counted() -> None:
    lost = (loss(T0 + MINUTE, pool="a-spot"), loss(T0 + MINUTE, pool="b-spot"))
    resumed = only(decide(suspending(), observed_suspended(losses=lost, restarts=3), policy()), Resume).state
    after = decide(resumed, observed(pool="b-spot", losses=lost, restarts=3, now=T0 + HOUR), policy())
    assert state_of(after).evictions == 0
    assert state_of(after).unexplained == 0


@pytest.mark.parametrize("outcome", list(JobOutcome))
def test_a_job_that_ends_while_suspended_is_finished(outcome: JobOutcome) -> None:
    decision = decide(suspending(), observed_suspended(outcome=outcome), policy())
    assert kinds(decision) == [WriteState]
    assert state_of(decision).phase is Phase.FINISHED, "what has ended cannot be resumed"
    again = decide(decision.state, observed_suspended(outcome=outcome), policy())
    assert (again.actions, again.events) == ((), ())


def test_a_job_that_another_client_resumes_during_a_move_is_suspended_again_a_few_times() -> None:
    decision = decide(suspending(), observed(pool="b-spot", pods_remaining=6), policy())
    assert only(decision, Suspend).state.resuspensions == 1, "old and new pods would run side by side"
    assert "ResumedExternally" in reasons(decision), "and an event informs the user"
    again = decide(suspending(resuspensions=1), observed(pool="b-spot"), policy())
    assert only(again, Suspend)
    assert "ResumedExternally" not in reasons(again)
    decision = decide(suspending(resuspensions=MAX_RESUSPENSIONS), observed(pool="b-spot"), policy())
    assert kinds(decision) == [WriteState], "a GitOps tool would never stop"
    assert (state_of(decision).phase, state_of(decision).pool) == (Phase.WAITING, "b-spot")


@pytest.mark.parametrize("without", [NoPolicy(), NoPolicy(problems=("spec.tiers: got none",))])
def test_a_move_is_completed_without_its_policy(without: NoPolicy) -> None:
    assert only(decide(suspending(), observed_suspended(), without), Resume).pool == "b-spot"


@pytest.mark.parametrize("state", [suspending(evictions=3), suspending(phase=Phase.PAUSED)])
def test_a_job_whose_label_is_removed_in_a_move_is_its_users_at_once(state: JobState) -> None:
    decision = decide(state, observed_suspended(follows=False), policy())
    assert (kinds(decision), reasons(decision)) == ([WriteState], ["HandedOver"])
    stopped = state_of(decision)
    assert (stopped.phase, stopped.pool, stopped.evictions) == (Phase.STOPPED, "b-spot", 0)
    assert "set `suspend: false` to resume it" in decision.events[0].message
    assert not decide(stopped, observed_suspended(follows=False), policy()).actions
    resumed = decide(state, observed(follows=False, pool="b-spot"), policy())
    assert Suspend not in kinds(resumed)


@pytest.mark.parametrize("state", [None, running(evictions=2), waiting()])
def test_a_job_is_stopped_by_its_annotation(state: JobState | None) -> None:
    for ladder in (policy(), NoPolicy()):
        decision = decide(state, observed(stop_requested=True, pods_placed=2), ladder)
        suspend = only(decision, Suspend)
        assert (suspend.pool, suspend.state.phase) == ("a-spot", Phase.STOPPED)
        assert reasons(decision) == ["Stopped"]
    asked = observed_suspended(stop_requested=True, pool="a-spot")
    assert not decide(suspend.state, asked, policy()).actions
    assert not decide(suspend.state, replace(asked, stop_requested=False), policy()).actions
    assert Suspend in kinds(decide(suspend.state, observed(stop_requested=True), policy()))


@pytest.mark.parametrize("state", [suspending(evictions=3), suspending(phase=Phase.PAUSED)])
def test_a_job_is_stopped_by_its_annotation_in_the_middle_of_a_move(state: JobState) -> None:
    asked = observed_suspended(stop_requested=True, outdated_children=1)
    decision = decide(state, asked, policy())
    assert kinds(decision) == [WriteState, DeleteChildren]
    stopped = state_of(decision)
    assert (stopped.phase, stopped.pool, stopped.moves) == (Phase.STOPPED, "b-spot", 1)
    resumed = decide(stopped, observed(pool="b-spot", now=T0 + HOUR), policy())
    assert state_of(resumed).pool == "b-spot"
    waits = decide(state, replace(asked, pods_remaining=2), policy())
    assert kinds(waits) == [WriteState]


def test_a_copy_without_a_permit_stays_stopped_until_its_home_resumes_it() -> None:
    waits = observed_suspended(stop_requested=True, awaits_permit=True, pool="a-spot")
    decision = decide(None, waits, policy())
    assert "home" in decision.events[0].message, "its user cannot resume it, and must not look for a way"
    granted = decide(state_of(decision), observed(pods_placed=0), policy())
    assert state_of(granted).phase is Phase.WAITING


def test_a_job_that_its_user_resumes_is_not_charged_for_the_restart_of_an_outage_before() -> None:
    hit = suspending(restart_expected=True, evictions=1)
    stopped = state_of(decide(hit, observed_suspended(stop_requested=True), policy()))
    assert stopped.phase is Phase.STOPPED
    on_next = observed(pool="b-spot", pods_placed=0)
    resumed = state_of(decide(stopped, on_next, policy()))
    late = state_of(decide(resumed, replace(on_next, restarts=1, now=T0 + 5 * MINUTE), policy()))
    assert late.unexplained == 0
    again = state_of(decide(late, replace(on_next, restarts=2, now=T0 + 10 * MINUTE), policy()))
    assert again.unexplained == 1
    seen = state_of(decide(stopped, replace(on_next, restarts=1), policy()))
    later = state_of(decide(seen, replace(on_next, restarts=2, now=T0 + 10 * MINUTE), policy()))
    assert later.unexplained == 1


def test_a_job_that_cannot_be_suspended_is_stopped_once_it_can() -> None:
    decision = decide(running(), observed(stop_requested=True, can_be_suspended=False), policy())
    assert Suspend not in kinds(decision), "its operator would ignore it"
    ended = decide(running(), observed(stop_requested=True, outcome=JobOutcome.COMPLETED), policy())
    assert state_of(ended).phase is Phase.FINISHED


def test_a_target_tier_that_is_removed_or_without_pool_is_skipped() -> None:
    decision = decide(suspending(), observed_suspended(), policy(tiers=(SPOT, LAST)))
    suspend = only(decision, Suspend)
    assert (suspend.pool, suspend.state.rank) == ("on-demand", 1)
    resumed = decide(suspend.state, observed_suspended(pool="on-demand"), policy(tiers=(SPOT, LAST)))
    assert only(resumed, Resume).pool == "on-demand"
    reordered = policy(tiers=(tier("b-spot"), SPOT, LAST))
    assert only(decide(suspending(), observed_suspended(), reordered), Resume).pool == "b-spot"
    gone = observed_suspended(pools={"b-spot": PoolStatus(exists=False)})
    assert only(decide(suspending(), gone, policy()), Suspend).pool == "on-demand"
    gone = {name: PoolStatus(exists=False) for name in ("a-spot", "b-spot", "on-demand")}
    decision = decide(suspending(), observed_suspended(pools=gone), policy())
    assert Resume in kinds(decision)


def test_kueue_may_take_over_a_suspended_job() -> None:
    decision = decide(suspending(), observed_suspended(is_managed_by_kueue=True), policy())
    assert (kinds(decision), state_of(decision).phase) == ([WriteState], Phase.STOPPED)


def test_a_restart_in_place_keeps_what_was_counted() -> None:
    restart = suspending(pool="a-spot", rank=0, purpose=Purpose.RESTART, evictions=2)
    state = only(decide(restart, observed_suspended(pool="a-spot"), policy()), Resume).state
    assert (state.evictions, state.moves, state.since) == (2, 0, T0 - HOUR)


def test_a_failback_resumes_with_a_toleration_and_deletes_the_placeholders() -> None:
    attempt = failing_back(FailbackStage.MOVING)
    up = suspending(pool="a-spot", rank=0, purpose=Purpose.FAILBACK, failback=attempt)
    decision = decide(up, observed_suspended(pool="a-spot", reservation=reserved()), policy())
    assert kinds(decision) == [Resume, DeletePlaceholders]
    assert only(decision, Resume).tolerate_reservation
    assert only(decision, Resume).state.entered_by_failback


LOST = observed(outcome=JobOutcome.FAILED, failure_cause=Cause.EVICTION, can_be_recreated=True)


@pytest.mark.parametrize("outcome", list(JobOutcome))
def test_a_job_that_has_ended_is_closed_with_an_event(outcome: JobOutcome) -> None:
    decision = decide(running(), observed(outcome=outcome), policy())
    assert (kinds(decision), reasons(decision)) == ([WriteState], [outcome.value])
    assert decision.requeue_at is None


def test_the_eviction_of_a_recreated_job_is_forgotten_after_the_failure_window() -> None:
    ladder = policy(failure_window=24 * HOUR)
    recreated = only(decide(running(), LOST, ladder), Recreate).state
    assert recreated.evictions == len(recreated.failures) == 1
    later = decide(replace(recreated, uid=UID), observed(now=T0 + 25 * HOUR), ladder)
    assert state_of(later).evictions == 0


def test_a_job_that_is_created_again_on_another_tier_has_moved() -> None:
    assert EventReason.MOVED not in reasons(decide(running(), LOST, policy()))
    for state in (running(evictions=2), suspending()):
        decision = decide(state, LOST, policy())
        assert {EventReason.MOVED, EventReason.RECREATED} <= set(reasons(decision))


def test_a_job_is_recreated_only_if_it_asks_for_it() -> None:
    decision = decide(running(), replace(LOST, can_be_recreated=False), policy())
    assert (kinds(decision), state_of(decision).phase) == ([WriteState], Phase.FINISHED)
    assert "create it again" in decision.events[0].message


@pytest.mark.parametrize(
    ("state", "seen", "ladder", "why"),
    [
        (running(recreations=MAX_RECREATIONS), LOST, policy(), "every path must end"),
        (running(), LOST, NoPolicy(), "there is no tier to make it on"),
        (running(), replace(LOST, failure_cause=None), policy(), "its cause was not observed"),
        (running(), replace(LOST, failure_cause=Cause.APPLICATION), policy(), "it would fail again"),
        (running(), replace(LOST, follows=False), policy(), "a job that does not follow is left alone"),
        (running(), replace(LOST, is_managed_by_kueue=True), policy(), "Kueue's jobs are left alone"),
    ],
)
def test_a_failed_job_is_not_recreated_where(
    state: JobState, seen: Observation, ladder: Policy | NoPolicy, why: str
) -> None:
    assert Recreate not in kinds(decide(state, seen, ladder)), why


def test_a_recreated_job_adopts_its_state_on_the_tier_that_is_its_turn() -> None:
    recreate = only(decide(running(), LOST, policy()), Recreate)
    assert (recreate.pool, recreate.state.evictions, recreate.state.recreations) == ("a-spot", 1, 1)
    made = only(decide(running(evictions=1), LOST, policy()), Recreate).state
    decision = decide(replace(made, uid="the-new-one"), observed(uid="the-new-one", restarts=0), policy())
    assert state_of(decision).evictions == 2
    recreate = only(decide(running(evictions=2), LOST, policy()), Recreate)
    assert (recreate.pool, recreate.state.evictions) == ("b-spot", 0)
    recreate = only(decide(suspending(), LOST, policy()), Recreate)
    assert (recreate.pool, recreate.state.evictions) == ("b-spot", 0)


@pytest.mark.parametrize("is_over", [True, False])
@pytest.mark.parametrize("has_policy", [True, False])
@pytest.mark.parametrize(
    "obstacle", [{}, {"pods_remaining": 1}, {"pool": "b-spot"}, {"outdated_children": 1}]
)
def test_a_paused_job_resumes_after_its_pause_or_without_a_ladder(
    obstacle: Mapping[str, object], *, has_policy: bool, is_over: bool
) -> None:
    paused = running(phase=Phase.PAUSED, resume_at=T0 if is_over else T0 + SECOND, evictions=1)
    observation = replace(observed_suspended(pool="a-spot"), **obstacle)
    decision = decide(paused, observation, policy() if has_policy else NoPolicy())
    if has_policy and not is_over:
        assert (decision.actions, decision.state) == ((), paused)
    elif obstacle:
        state = only(decision, WriteState).state
        assert (state.phase, state.purpose, state.resume_at) == (Phase.SUSPENDING, Purpose.RESTART, None)
    else:
        state = only(decision, Resume).state
        assert (state.pool, state.evictions, state.moves) == ("a-spot", 1, 0)


@pytest.mark.parametrize("phase", [Phase.SUSPENDING, Phase.PAUSED, Phase.GIVEN_UP])
@pytest.mark.parametrize("pool", ["a-spot", "b-spot", None])
def test_a_job_that_another_client_resumes_is_waiting_again(phase: Phase, pool: str | None) -> None:
    suspended = running(phase=phase, evictions=2, moves=3, yields=1, resuspensions=MAX_RESUSPENSIONS)
    decision = decide(suspended, observed(pool=pool, pods_placed=0), policy())
    state = only(decision, WriteState).state
    assert state.phase is Phase.WAITING
    is_same_visit = phase is Phase.PAUSED
    assert (state.evictions, state.moves, state.yields) == ((2, 3, 1) if is_same_visit else (0, 4, 0))
    expected = "a-spot" if is_same_visit or pool is None else pool
    assert state.pool == expected
    [event] = decision.events
    assert (event.reason, event.is_warning) == (EventReason.RESUMED_EXTERNALLY, phase is Phase.SUSPENDING)
