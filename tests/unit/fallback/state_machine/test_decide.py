"""Every state and observation, sensible or not, has one answer, and no answer breaks what must never be broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings

from holdfast.fallback.state_machine.actions import (
    CreatePlaceholders,
    DeleteChildren,
    Recreate,
    RequestCheckpoint,
    Resume,
    Suspend,
    TaintReservedNodes,
    WriteState,
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
        if isinstance(action, WriteState | Suspend | Resume | Recreate)
    ]


@MANY
@given(states, observations, policies)
def test_every_state_and_observation_has_one_answer_that_is_written_once(
    state: JobState | UnreadableState | None, observation: Observation, policy: Policy | NoPolicy
) -> None:
    decision = decide(state, observation, policy)
    assert decision == decide(state, observation, policy), "the same look must lead to the same decision"
    written = carried(decision)
    assert len(written) <= 1, "two writes of one annotation could be cut apart by a death between them"
    assert all(each == decision.state for each in written), "what is written is what is decided"
    if decision.state != state:
        assert written or decision.state is None, "a state that changes must be written"
    assert decision.requeue_at is None or decision.requeue_at > observation.now, (
        "a wake in the past is a busy loop"
    )


@MANY
@given(states, observations, policies)
def test_what_is_written_can_be_read_again(
    state: JobState | UnreadableState | None, observation: Observation, policy: Policy | NoPolicy
) -> None:
    for written in carried(decide(state, observation, policy)):
        assert read_state(write_state(written)) == written, "the annotation holds all that was decided"


@MANY
@given(states, observations, policies)
def test_nothing_is_resumed_that_is_not_ours_or_has_pods_left(
    state: JobState | UnreadableState | None, observation: Observation, policy: Policy | NoPolicy
) -> None:
    decision = decide(state, observation, policy)
    if any(isinstance(action, Resume) for action in decision.actions):
        assert isinstance(state, JobState), "only a state of ours says that a suspension is ours"
        assert state.phase in {Phase.SUSPENDING, Phase.PAUSED}, (
            f"{state.phase} is no suspension that ends by itself"
        )
        assert observation.suspended, "a job that runs needs no resuming"
        assert observation.is_suspension_complete or state.phase is Phase.PAUSED, (
            "the operator has not carried the suspension out yet"
        )
        assert observation.pods_remaining == 0, "the old gang and the new one would write one checkpoint"
        assert observation.outdated_children == 0, "resuming merges the old selectors into the new ones"


@MANY
@given(states, observations, policies)
def test_a_suspension_goes_with_a_state_that_says_it_is_ours(
    state: JobState | UnreadableState | None, observation: Observation, policy: Policy | NoPolicy
) -> None:
    for action in decide(state, observation, policy).actions:
        if isinstance(action, Suspend):
            assert action.state.suspended_by_us, "else nobody would ever resume the job"
            was_ours = isinstance(state, JobState) and state.suspended_by_us
            assert not observation.suspended or was_ours, "a user's suspension must not become ours"
            assert observation.outcome is None, "a job that has ended is not touched"
        if isinstance(action, Resume):
            assert not action.state.suspended_by_us, "a job that runs is not marked as suspended"


@MANY
@given(states, observations, policies)
def test_a_job_that_is_none_of_ours_is_not_touched(
    state: JobState | UnreadableState | None, observation: Observation, policy: Policy | NoPolicy
) -> None:
    decision = decide(state, observation, policy)
    is_ours_to_end = (
        isinstance(state, JobState) and state.suspended_by_us and state.uid in {"", observation.uid}
    )
    if (not observation.follows or observation.is_managed_by_kueue) and not is_ours_to_end:
        touching = (
            Suspend
            | Resume
            | DeleteChildren
            | CreatePlaceholders
            | TaintReservedNodes
            | RequestCheckpoint
            | Recreate
        )
        assert not [action for action in decision.actions if isinstance(action, touching)], (
            "nothing is done to a job that does not follow, or that Kueue manages"
        )


@MANY
@given(states, observations, policies)
def test_nothing_stays_held_for_a_job_that_is_not_on_its_way_up(
    state: JobState | UnreadableState | None, observation: Observation, policy: Policy | NoPolicy
) -> None:
    decision = decide(state, observation, policy)
    if observation.reservation is not None and (decision.state is None or decision.state.failback is None):
        assert "ReleaseReservation" in [type(action).__name__ for action in decision.actions], (
            "held capacity costs money"
        )
