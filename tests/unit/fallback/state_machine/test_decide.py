"""Every state and observation, sensible or not, has one answer, and no answer breaks what must never be broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings

from holdfast.fallback.state_machine.actions import (
    AskCheckpoint,
    DeleteChildren,
    Hold,
    Record,
    Recreate,
    Resume,
    Suspend,
    TaintHeld,
)
from holdfast.fallback.state_machine.decision import Decision, decide
from holdfast.fallback.state_machine.state import JobState, Phase, read_state, write_state
from tests.support.ladder_strategies import observations, policies, states

if TYPE_CHECKING:
    from holdfast.fallback.policy.policy import NoPolicy, Policy
    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.fallback.state_machine.state import UnreadableState

MANY = settings(max_examples=100, deadline=None)


def carried(decision: Decision) -> list[JobState]:
    return [
        action.state
        for action in decision.actions
        if isinstance(action, Record | Suspend | Resume | Recreate)
    ]


@MANY
@given(states, observations, policies)
def test_every_state_and_observation_has_one_answer_that_is_written_once(
    state: JobState | UnreadableState | None, seen: Observation, policy: Policy | NoPolicy
) -> None:
    decision = decide(state, seen, policy)
    assert decision == decide(state, seen, policy), "the same look must lead to the same decision"
    written = carried(decision)
    assert len(written) <= 1, "two writes of one annotation could be cut apart by a death between them"
    assert all(each == decision.state for each in written), "what is written is what is decided"
    if decision.state != state:
        assert written or decision.state is None, "a state that changes must be written"
    assert decision.wake_at is None or decision.wake_at > seen.now, "a wake in the past is a busy loop"


@MANY
@given(states, observations, policies)
def test_what_is_written_can_be_read_again(
    state: JobState | UnreadableState | None, seen: Observation, policy: Policy | NoPolicy
) -> None:
    for written in carried(decide(state, seen, policy)):
        assert read_state(write_state(written)) == written, "the annotation holds all that was decided"


@MANY
@given(states, observations, policies)
def test_nothing_is_resumed_that_is_not_ours_or_has_pods_left(
    state: JobState | UnreadableState | None, seen: Observation, policy: Policy | NoPolicy
) -> None:
    decision = decide(state, seen, policy)
    if any(isinstance(action, Resume) for action in decision.actions):
        assert isinstance(state, JobState), "only a state of ours says that a suspension is ours"
        assert state.phase in {Phase.SUSPENDING, Phase.PAUSED}, (
            f"{state.phase} is no suspension that ends by itself"
        )
        assert seen.suspended, "a job that runs needs no resuming"
        assert seen.at_rest or state.phase is Phase.PAUSED, (
            "the operator has not carried the suspension out yet"
        )
        assert seen.pods_left == 0, "the old gang and the new one would write one checkpoint"
        assert seen.outdated_children == 0, "resuming merges the old selectors into the new ones"


@MANY
@given(states, observations, policies)
def test_a_suspension_goes_with_a_state_that_says_it_is_ours(
    state: JobState | UnreadableState | None, seen: Observation, policy: Policy | NoPolicy
) -> None:
    for action in decide(state, seen, policy).actions:
        if isinstance(action, Suspend):
            assert action.state.suspended_by_us, "else nobody would ever resume the job"
            was_ours = isinstance(state, JobState) and state.suspended_by_us
            assert not seen.suspended or was_ours, "a user's suspension must not become ours"
            assert seen.outcome is None, "a job that has ended is not touched"
        if isinstance(action, Resume):
            assert not action.state.suspended_by_us, "a job that runs is not marked as suspended"


@MANY
@given(states, observations, policies)
def test_a_job_that_is_none_of_ours_is_not_touched(
    state: JobState | UnreadableState | None, seen: Observation, policy: Policy | NoPolicy
) -> None:
    decision = decide(state, seen, policy)
    is_ours_to_end = isinstance(state, JobState) and state.suspended_by_us and state.uid in {"", seen.uid}
    if (not seen.follows or seen.queued) and not is_ours_to_end:
        touching = Suspend | Resume | DeleteChildren | Hold | TaintHeld | AskCheckpoint | Recreate
        assert not [action for action in decision.actions if isinstance(action, touching)], (
            "nothing is done to a job that does not follow, or that Kueue manages"
        )


@MANY
@given(states, observations, policies)
def test_nothing_stays_held_for_a_job_that_is_not_on_its_way_up(
    state: JobState | UnreadableState | None, seen: Observation, policy: Policy | NoPolicy
) -> None:
    decision = decide(state, seen, policy)
    if seen.held is not None and (decision.state is None or decision.state.returning is None):
        assert "Release" in [type(action).__name__ for action in decision.actions], (
            "held capacity costs money"
        )
