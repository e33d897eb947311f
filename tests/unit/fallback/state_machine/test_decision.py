"""What the ladder does not touch: others' suspensions, Kueue's jobs, jobs without a ladder, and what it cannot read."""

from __future__ import annotations

import pytest

from holdfast.fallback.policy.policy import NoPolicy
from holdfast.fallback.state_machine.actions import ReleaseReservation, Suspend, WriteState
from holdfast.fallback.state_machine.decision import decide
from holdfast.fallback.state_machine.events import JobEvent
from holdfast.fallback.state_machine.observation import Outcome
from holdfast.fallback.state_machine.state import (
    FailbackAttempt,
    FailbackStage,
    JobState,
    Phase,
    UnreadableState,
)
from tests.support.ladder import (
    HOUR,
    LAST,
    MINUTE,
    T0,
    held,
    kinds,
    loss,
    policy,
    reasons,
    running,
    seen,
    state_of,
    suspending,
    tier,
    waiting,
)

STOPPED = seen(suspended=True, is_suspension_complete=True, pods_placed=0, pods_started=0, pods_remaining=0)


def test_a_users_suspension_is_noted_and_never_undone() -> None:
    decision = decide(running(), STOPPED, policy())
    assert kinds(decision) == [WriteState], "it is written down, and nothing else"
    assert state_of(decision).phase is Phase.STOPPED, "as somebody else's"
    later = decide(decision.state, STOPPED, policy())
    assert (later.actions, later.requeue_at) == ((), None), "however long it lasts"


def test_a_job_that_was_created_suspended_waits_for_its_user() -> None:
    decision = decide(None, STOPPED, policy())
    assert state_of(decision).phase is Phase.STOPPED, "it never had a mark of ours"


def test_the_clock_stands_still_while_a_user_has_suspended_the_job() -> None:
    stopped = decide(waiting(), STOPPED, policy()).state
    resumed = decide(stopped, seen(pods_placed=0, now=T0 + 9 * HOUR), policy())
    assert state_of(resumed).waiting_since == T0 + 9 * HOUR, "the wait for nodes begins when it is resumed"
    assert Suspend not in kinds(resumed), "and it has not waited for nine hours"


def test_what_a_user_suspends_away_is_no_failure() -> None:
    stopped = decide(running(), STOPPED, policy()).state
    lost = seen(losses=(loss(T0 + MINUTE),), restarts=2, now=T0 + HOUR)
    assert state_of(decide(stopped, lost, policy())).evictions == 0, (
        "its pods went because somebody wanted it"
    )


def test_a_stay_begins_again_when_a_user_resumes_the_job() -> None:
    stopped = running(pool="on-demand", rank=2, phase=Phase.STOPPED)
    decision = decide(stopped, seen(pool="on-demand", now=T0 + HOUR), policy(return_after=HOUR))
    assert state_of(decision).since == T0 + HOUR, "hours in which it stood still say nothing of the market"
    assert state_of(decision).failback is None, "so no better tier is tried before it has stayed"


def test_counts_survive_a_users_suspension() -> None:
    stopped = decide(running(evictions=2), STOPPED, policy()).state
    assert state_of(decide(stopped, seen(now=T0 + HOUR), policy())).evictions == 2, "the tier did cost them"


def test_a_job_that_its_user_put_on_another_tier_is_followed_there() -> None:
    stopped = running(phase=Phase.STOPPED, evictions=2)
    decision = decide(stopped, seen(pool="b-spot"), policy())
    assert (state_of(decision).pool, state_of(decision).rank) == ("b-spot", 1), "that is where it is"
    assert state_of(decision).evictions == 0, "and nothing has happened there yet"


def test_a_job_that_its_user_took_off_the_ladder_is_left_alone() -> None:
    decision = decide(running(phase=Phase.STOPPED), seen(pool="elsewhere"), policy())
    assert reasons(decision) == ["NotOnLadder"], "an Event says how to put it back"
    assert Suspend not in kinds(decision), "and nothing is done"


def test_a_state_that_was_copied_with_a_manifest_is_another_jobs() -> None:
    copied = suspending(uid="the-job-it-was-exported-from")
    decision = decide(copied, STOPPED, policy())
    assert state_of(decision).phase is Phase.STOPPED, "this one was suspended by whoever applied it"


def test_an_annotation_that_cannot_be_read_begins_anew_with_an_event() -> None:
    decision = decide(UnreadableState(problem="it is no JSON object"), seen(), policy())
    assert reasons(decision)[0] == "StateUnreadable", "its user is told"
    assert state_of(decision).phase is Phase.RUNNING, "and the job is followed again"


def test_a_suspension_with_an_annotation_that_cannot_be_read_is_not_undone() -> None:
    decision = decide(UnreadableState(problem="phase: no"), STOPPED, policy())
    assert state_of(decision).phase is Phase.STOPPED, "nobody can tell whose it is"
    assert "`suspend: false` resumes it" in decision.events[0].message, "so its user is told how to resume it"


@pytest.mark.parametrize("state", [None, running()])
def test_kueues_jobs_are_left_alone_with_an_event(state: JobState | None) -> None:
    decision = decide(state, seen(is_managed_by_kueue=True, losses=(loss(),)), policy())
    assert (decision.actions, reasons(decision)) == ((), ["ManagedByKueue"]), "Kueue would undo a suspension"
    assert decision.events[0].is_standing, "and it is not said at every look"


@pytest.mark.parametrize("state", [None, running()])
def test_a_job_that_can_never_be_suspended_is_left_alone_with_an_event(state: JobState | None) -> None:
    decision = decide(state, seen(not_suspendable_reason="set shutdownAfterJobFinishes: true"), policy())
    assert (decision.actions, reasons(decision)) == ((), ["CannotFollow"]), "it would be lost in the move"
    assert "shutdownAfterJobFinishes" in decision.events[0].message, "with the fix"


@pytest.mark.parametrize("state", [None, running(), waiting()])
def test_a_job_in_a_namespace_without_a_policy_stays_where_it_is(state: JobState | None) -> None:
    decision = decide(state, seen(pods_placed=0, now=T0 + 9 * HOUR), NoPolicy())
    assert (decision.actions, reasons(decision)) == ((), ["NoPolicy"]), "there is no ladder to follow"


def test_a_policy_that_cannot_be_used_is_quoted_to_the_jobs_user() -> None:
    decision = decide(running(), seen(), NoPolicy(problems=("spec.tiers: got no tier",)))
    assert reasons(decision) == ["PolicyUnusable"], "nothing is done by half a ladder"
    assert "spec.tiers: got no tier" in decision.events[0].message, "and what to fix is said"


def test_a_job_that_does_not_follow_is_none_of_ours() -> None:
    decision = decide(None, seen(follows=False, losses=(loss(),)), policy())
    assert (decision.state, decision.actions, decision.events) == (None, (), ()), "nobody asked for it"


def test_a_job_that_does_not_follow_any_more_keeps_its_state_and_is_not_moved() -> None:
    decision = decide(running(evictions=9), seen(follows=False), policy())
    assert (decision.state, decision.actions) == (running(evictions=9), ()), "the label was taken off"


def test_a_job_whose_pods_select_no_tier_is_left_alone_with_an_event() -> None:
    for pool in (None, "elsewhere"):
        decision = decide(None, seen(pool=pool), policy())
        assert (decision.state, reasons(decision)) == (None, ["NotOnLadder"]), f"{pool} is on no ladder"
        assert "a-spot, b-spot, on-demand" in decision.events[0].message, (
            "the Event says what it could select"
        )


def test_a_job_that_has_ended_before_it_was_seen_is_not_written_to() -> None:
    for outcome in Outcome:
        assert not decide(None, seen(outcome=outcome), policy()).actions, "there is nothing to keep"


def test_what_is_held_is_let_go_when_a_job_stops_following() -> None:
    attempt = FailbackAttempt(pool="a-spot", stage=FailbackStage.RESERVING, since=T0)
    climbing = running(pool="on-demand", rank=2, failback=attempt)
    for left in (seen(follows=False, reservation=held()), seen(is_managed_by_kueue=True, reservation=held())):
        decision = decide(climbing, left, policy(return_after=HOUR))
        assert kinds(decision) == [WriteState, ReleaseReservation], "nobody will use it"
    gone = decide(None, seen(follows=False, reservation=held()), policy())
    assert kinds(gone) == [ReleaseReservation], "not even when its state is gone"


def test_the_first_look_holds_nothing_from_before_against_the_tier() -> None:
    state = state_of(decide(None, seen(restarts=7, disrupted_restarts=3), policy()))
    assert (state.restarts, state.disrupted_restarts) == (7, 3), "nobody knows where these were"
    assert (state.evictions, state.unexplained) == (0, 0), "so none of them counts"


def test_a_removed_tier_does_not_disturb_the_job_that_runs_on_it() -> None:
    decision = decide(running(evictions=99), seen(), policy(tiers=(tier("b-spot"), LAST)))
    assert not decision.actions, "it has its nodes"


def test_a_job_on_a_removed_tier_goes_on_to_what_stands_in_its_place_when_it_loses_them() -> None:
    decision = decide(running(), seen(pods_placed=0, losses=(loss(),)), policy(tiers=(tier("b-spot"), LAST)))
    assert [action.pool for action in decision.actions if isinstance(action, Suspend)] == ["b-spot"], (
        "rank 0 is b now"
    )


def test_a_job_on_a_last_tier_that_was_removed_goes_to_the_last_there_is() -> None:
    on_last = running(pool="on-demand", rank=2)
    decision = decide(on_last, seen(pool="on-demand", pods_placed=0), policy(tiers=(tier(), tier("b-spot"))))
    assert [action.pool for action in decision.actions if isinstance(action, Suspend)] == ["b-spot"], (
        "as low as it goes"
    )


def test_a_tier_that_was_moved_in_the_ladder_is_found_by_its_pool() -> None:
    reordered = policy(tiers=(tier("b-spot"), tier("a-spot"), LAST))
    decision = decide(running(evictions=3), seen(), reordered)
    assert [action.pool for action in decision.actions if isinstance(action, Suspend)] == ["on-demand"], (
        "below it now"
    )


def test_notices_of_the_adapter_are_passed_on() -> None:
    notice = JobEvent(
        reason="EndsCleanly", message="It ends 0 on SIGTERM.", is_warning=True, is_standing=True
    )
    assert decide(running(), seen(notices=(notice,)), policy()).events == (notice,), (
        "a script that ends 0 completes"
    )
