"""The state annotation: every state survives a round trip, and every text can be read."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.state_machine.state import JobState, UnreadableState
from pulumi_holdfast.controller.state_machine.state_annotation import read_state, write_state
from tests.support.builders.job_states import T0, running
from tests.support.strategies.any_json import any_json
from tests.support.strategies.job_situations import job_states


@given(job_states)
def test_a_state_that_is_written_is_read_again(state: JobState) -> None:
    assert read_state(write_state(state)) == state, "all that is kept of a job is in its annotation"


@given(st.text() | any_json("uid", "phase").map(json.dumps))
def test_any_annotation_can_be_read(text: str) -> None:
    assert isinstance(read_state(text), JobState | UnreadableState), "any user may edit an annotation"


def test_a_missing_annotation_is_no_state_and_a_deeply_nested_one_unreadable() -> None:
    assert read_state(None) is None, "the job has not been seen before"
    assert isinstance(read_state("[" * 100_000), UnreadableState), "it must not end the controller"


def test_fields_of_other_versions_are_read_and_defaults_omitted() -> None:
    newer = {**json.loads(write_state(running())), "mood": "good"}
    assert read_state(json.dumps(newer)) == running(), "a controller may be rolled back"
    older = json.loads(write_state(running(evictions=2)))
    del older["evictions"]
    assert read_state(json.dumps(older)) == running(), "a controller may be upgraded"
    assert set(json.loads(write_state(running()))) == {"uid", "phase", "pool", "rank", "since"}, (
        "it is sent often"
    )
    state = replace(running(), since=T0.astimezone())
    assert '"2030-05-01T12:00:00Z"' in write_state(state), "whatever the machine's time zone is"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("phase", "Dancing", "phase: 'Dancing'"),
        ("rank", -1, "rank: it is not a count"),
        ("rank", True, "rank: it is not a count"),
        ("rank", 10**400, "rank: it is not a count"),
        ("since", "yesterday", "since: "),
        ("since", "2030-05-01T12:00:00", "with a time zone"),
        ("since", "9999-12-31T23:59:59Z", "not a time between"),
        ("since", 5, "since: it is not a time"),
        ("waited", float("nan"), "waited: it is not a number of seconds"),
        ("waited", -1, "waited: it is not a number of seconds"),
        ("entered_by_failback", "yes", "entered_by_failback: it is neither true nor false"),
        ("pool", "x" * 300, "pool: it is not a text"),
        ("failback", {"pool": "a"}, "failback: "),
        ("failback", [], "failback: it is not a JSON object"),
    ],
)
def test_an_invalid_value_is_named(field: str, value: object, said: str) -> None:
    broken = {**json.loads(write_state(running())), field: value}
    state = read_state(json.dumps(broken))
    assert isinstance(state, UnreadableState), "half a state is worse than none"
    assert said in state.problem, f"an Event says what is wrong with it: {state.problem}"


@pytest.mark.parametrize("missing", ["uid", "phase", "pool", "rank", "since"])
def test_a_missing_required_field_is_named(missing: str) -> None:
    broken = json.loads(write_state(running()))
    del broken[missing]
    assert read_state(json.dumps(broken)) == UnreadableState(problem=f"{missing} is missing"), (
        "and so is the field"
    )
