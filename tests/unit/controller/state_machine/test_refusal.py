"""Refused jobs: a new one is suspended before a tier's time runs, and resumed once nothing is wrong any more."""

from dataclasses import replace

import pytest

from pulumi_holdfast.controller.jobs.actions import EventReason, Resume, Suspend, WriteState
from pulumi_holdfast.controller.jobs.observation import JobOutcome, Judgement, Observation
from pulumi_holdfast.controller.jobs.patches import read_state, write_state
from pulumi_holdfast.controller.jobs.state import LONGEST_REFUSAL, JobState, Phase
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.ladder.ladder import NoPolicy
from tests.support.builders.job_states import (
    HOUR,
    MINUTE,
    T0,
    UID,
    kinds,
    observed,
    observed_suspended,
    only,
    policy,
    reasons,
    running,
    state_of,
    waiting,
)

WHY = "The API server refuses a pod of workers: violates PodSecurity."
WRONG = Judgement(problems=(WHY,))
REFUSED = JobState(
    uid=UID, phase=Phase.REFUSED, pool="a-spot", rank=0, since=T0, suspended_at=T0, refusal=WHY
)


def unplaced(judgement: Judgement | None, **fields: bool) -> Observation:
    seen = observed(pods_placed=0, pods_started=0, pods_remaining=0, judgement=judgement)
    return replace(seen, **fields)


@pytest.mark.parametrize("state", [None, waiting()], ids=["first seen", "waiting"])
def test_a_new_job_that_is_refused_is_suspended_with_an_event(state: JobState | None) -> None:
    decision = decide(state, unplaced(WRONG), policy())
    suspend = only(decision, Suspend)
    assert (suspend.state.phase, suspend.state.refusal) == (Phase.REFUSED, WHY)
    assert suspend.state.waiting_since is None
    assert suspend.only_without_nodes
    assert EventReason.REFUSED in reasons(decision)
    assert any(WHY in event.message for event in decision.events)


@pytest.mark.parametrize("judgement", [None, Judgement(), Judgement(not_judged=("a webhook.",))])
def test_a_job_without_a_problem_waits_for_its_nodes(judgement: Judgement | None) -> None:
    assert state_of(decide(None, unplaced(judgement), policy())).phase is Phase.WAITING


def test_what_is_not_judged_is_named() -> None:
    decision = decide(None, unplaced(Judgement(not_judged=("a pod of head: no dry run.",))), policy())
    (event,) = [each for each in decision.events if each.reason is EventReason.NOT_JUDGED]
    assert "a pod of head: no dry run." in event.message
    assert event.is_standing


@pytest.mark.parametrize(
    "state",
    [running(), waiting(evictions=1), waiting(moves=1), waiting(resumed_at=T0 - HOUR)],
    ids=["runs", "restarts", "has moved", "was resumed"],
)
def test_a_job_that_is_not_new_is_only_reported(state: JobState) -> None:
    decision = decide(state, unplaced(WRONG), policy())
    assert Suspend not in kinds(decision)
    assert EventReason.REFUSED in reasons(decision)


def test_a_job_that_cannot_be_suspended_now_is_only_reported() -> None:
    decision = decide(None, unplaced(WRONG, can_be_suspended=False), policy())
    assert kinds(decision) == [WriteState]
    assert EventReason.REFUSED in reasons(decision)


@pytest.mark.parametrize("judgement", [None, WRONG], ids=["not judged again", "still wrong"])
def test_a_refused_job_stays_suspended_without_a_deadline(judgement: Judgement | None) -> None:
    seen = observed_suspended(now=T0 + 100 * HOUR, pool="a-spot", judgement=judgement)
    decision = decide(REFUSED, seen, policy())
    assert decision.actions == ()
    assert decision.requeue_at is None


def test_a_refused_job_is_resumed_on_its_tier_when_nothing_is_wrong_any_more() -> None:
    seen = observed_suspended(now=T0 + MINUTE, pool="a-spot", judgement=Judgement())
    resume = only(decide(REFUSED, seen, policy()), Resume)
    assert resume.pool == "a-spot"
    assert (resume.state.phase, resume.state.refusal, resume.state.moves) == (Phase.WAITING, "", 0)


def test_a_refused_job_with_another_problem_records_it() -> None:
    other = Judgement(problems=("The ladder ends on spot.",))
    decision = decide(REFUSED, observed_suspended(pool="a-spot", judgement=other), policy())
    assert state_of(decision).refusal == "The ladder ends on spot."
    assert kinds(decision) == [WriteState]


def test_a_refused_job_that_its_user_resumes_runs_and_is_not_suspended_again() -> None:
    resumed = decide(REFUSED, unplaced(WRONG), policy())
    state = state_of(resumed)
    assert (state.phase, state.refusal) == (Phase.WAITING, "")
    assert EventReason.RESUMED_EXTERNALLY in reasons(resumed)
    again = decide(state, unplaced(WRONG), policy())
    assert Suspend not in kinds(again)
    assert EventReason.REFUSED in reasons(again)


def test_a_refused_job_without_its_label_is_handed_over() -> None:
    decision = decide(REFUSED, observed_suspended(pool="a-spot", follows=False), policy())
    assert state_of(decision).phase is Phase.STOPPED
    assert EventReason.HANDED_OVER in reasons(decision)


def test_a_job_beside_the_ladder_is_named_while_it_is_on_spot() -> None:
    said = Judgement(on_spot="the job selects spot, and nothing moves it.")
    decision = decide(None, unplaced(said, follows=False), policy())
    assert (decision.actions, decision.state) == ((), None)
    assert reasons(decision) == [EventReason.CANNOT_FOLLOW]
    ended = replace(unplaced(said, follows=False), outcome=JobOutcome.COMPLETED)
    assert reasons(decide(None, ended, policy())) == []


def test_a_job_without_a_ladder_is_not_refused() -> None:
    assert decide(None, unplaced(WRONG), NoPolicy()).actions == ()


def test_a_long_refusal_is_cut_and_can_be_read_again() -> None:
    long = Judgement(problems=("x" * 5000,))
    state = only(decide(None, unplaced(long), policy()), Suspend).state
    assert len(state.refusal) == LONGEST_REFUSAL
    assert read_state(write_state(state)) == state
