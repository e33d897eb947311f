"""Jobs that have ended: closed, or made anew where they ask for it and an eviction was to blame."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.fallback.policy.policy import NoPolicy
from holdfast.fallback.state_machine.actions import Recreate, WriteState
from holdfast.fallback.state_machine.decision import decide
from holdfast.fallback.state_machine.observation import Cause, Observation, Outcome
from holdfast.fallback.state_machine.phases import MAX_RECREATIONS
from holdfast.fallback.state_machine.state import Phase
from tests.support.ladder import kinds, only, policy, reasons, running, seen, state_of, suspending

LOST = seen(outcome=Outcome.FAILED, failure_cause=Cause.EVICTION, can_be_recreated=True)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_job_that_has_ended_is_closed_with_an_event(outcome: Outcome) -> None:
    decision = decide(running(), seen(outcome=outcome), policy())
    assert (kinds(decision), reasons(decision)) == ([WriteState], [outcome.value]), "once"
    assert decision.requeue_at is None, "and never looked at again"


def test_a_job_that_failed_and_does_not_ask_for_it_is_not_made_anew() -> None:
    decision = decide(running(), replace(LOST, can_be_recreated=False), policy())
    assert (kinds(decision), state_of(decision).phase) == ([WriteState], Phase.FINISHED), (
        "an Event is all it gets"
    )
    assert "create it again" in decision.events[0].message, "which says what to do"


def test_a_job_that_asks_for_it_is_made_anew_after_an_eviction() -> None:
    recreate = only(decide(running(), LOST, policy()), Recreate)
    assert (recreate.pool, recreate.state.evictions, recreate.state.recreations) == ("a-spot", 1, 1), (
        "it cost the tier"
    )
    assert recreate.state.uid == "", "nobody knows the new job's uid yet"


def test_the_job_made_anew_takes_its_state_over() -> None:
    made = only(decide(running(evictions=1), LOST, policy()), Recreate).state
    decision = decide(made, seen(uid="the-new-one", restarts=0), policy())
    assert (state_of(decision).uid, state_of(decision).evictions) == ("the-new-one", 2), (
        "it is the same training"
    )


def test_a_job_made_anew_goes_down_when_its_tier_is_spent() -> None:
    recreate = only(decide(running(evictions=2), LOST, policy()), Recreate)
    assert (recreate.pool, recreate.state.evictions) == ("b-spot", 0), "the third eviction moves it on"


def test_a_job_that_fails_in_the_middle_of_a_move_is_made_anew_where_it_was_bound_for() -> None:
    recreate = only(decide(suspending(), LOST, policy()), Recreate)
    assert (recreate.pool, recreate.state.evictions) == ("b-spot", 0), (
        "its outage was counted when the move began"
    )


@pytest.mark.parametrize("cause", [None, Cause.APPLICATION])
def test_a_program_that_failed_by_itself_is_not_made_anew(cause: Cause | None) -> None:
    assert Recreate not in kinds(decide(running(), replace(LOST, failure_cause=cause), policy())), (
        "it would fail again"
    )


def test_a_job_is_not_made_anew_for_ever() -> None:
    assert Recreate not in kinds(decide(running(recreations=MAX_RECREATIONS), LOST, policy())), (
        "every path must end"
    )


@pytest.mark.parametrize(
    "left_alone",
    [replace(LOST, follows=False), replace(LOST, is_managed_by_kueue=True)],
    ids=["does not follow", "Kueue's"],
)
def test_a_job_that_is_left_alone_is_not_made_anew(left_alone: Observation) -> None:
    assert Recreate not in kinds(decide(running(), left_alone, policy())), "nor touched otherwise"


def test_without_a_policy_no_job_is_made_anew() -> None:
    assert Recreate not in kinds(decide(running(), LOST, NoPolicy())), "there is no tier to make it on"
