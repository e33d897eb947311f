"""The state annotation and the marker of a suspension: every state survives a round trip, and every text can be read."""

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs import patches
from pulumi_holdfast.controller.jobs.actions import Resume, Suspend
from pulumi_holdfast.controller.jobs.patches import (
    read_record,
    read_state,
    recorded_state,
    write_marker,
    write_state,
)
from pulumi_holdfast.controller.jobs.rayjob_status import successor
from pulumi_holdfast.controller.jobs.state import (
    FailbackAttempt,
    FailbackStage,
    JobState,
    Ledger,
    OutageKind,
    Pace,
    Phase,
    PoolUse,
    Purpose,
    TimedFailure,
    UnreadableState,
)
from pulumi_holdfast.controller.kube.objects import uid_of
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import RECREATE, STATE, SUCCESSOR_OF, TIER
from pulumi_holdfast.ladder.ladder import MOST_TIERS
from tests.support.builders.fallback_objects import NOW, jobset, rayjob, worker
from tests.support.builders.fallback_objects import UID as JOB_UID
from tests.support.builders.job_states import (
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
    suspending,
)
from tests.support.json_objects import obj
from tests.support.strategies.any_json import any_json
from tests.support.strategies.job_situations import job_states

MARKER = f"v1 {UID} b-spot"

#: A state with every field.
WHOLE: Json = {
    "uid": UID,
    "phase": "Suspending",
    "pool": "b-spot",
    "rank": 1,
    "since": "2030-05-01T11:00:00Z",
    "waiting_since": "2030-05-01T11:10:00Z",
    "waited": 180.5,
    "evictions": 2,
    "application_failures": 1,
    "unexplained": 1,
    "failures": [{"kind": "Application", "at": "2030-05-01T09:00:00Z"}],
    "outage_kind": "Eviction",
    "outage_at": "2030-05-01T11:59:00Z",
    "outage_counted_at": "2030-05-01T12:00:00Z",
    "outage_pod_created_at": "2030-05-01T11:01:00Z",
    "eviction_at": "2030-05-01T11:58:00Z",
    "losses_counted_until": "2030-05-01T11:55:00Z",
    "restarts": 4,
    "disrupted_restarts": 3,
    "restart_expected": True,
    "resumed_at": "2030-05-01T11:02:00Z",
    "head_restarts": 1,
    "purpose": "Failback",
    "suspended_at": "2030-05-01T12:00:00Z",
    "operator_status": "2 False 2030-05-01T11:00:03Z",
    "resume_at": "2030-05-01T12:01:00Z",
    "moves": 2,
    "yields": 1,
    "resuspensions": 1,
    "failback": {
        "pool": "b-spot",
        "stage": "Moving",
        "since": "2030-05-01T12:00:00Z",
        "requested_at": "2030-05-01T12:00:30Z",
    },
    "last_failback_at": "2030-05-01T10:00:00Z",
    "short_failbacks": 1,
    "entered_by_failback": True,
    "recreations": 1,
    "refusal": "The API server refuses a pod of workers.",
    "pace": {
        "work_done": 3600.0,
        "counts_from": "2030-05-01T11:30:00Z",
        "progress": 0.25,
        "interruptions": 2,
        "is_late": True,
    },
    "ledger": {
        "counted_from": "2030-05-01T09:00:00Z",
        "counted_until": "2030-05-01T12:00:00Z",
        "uses": [
            {"pool": "west/b-spot", "capacity": "spot", "node_time": 7200.5, "ran": 1800.0, "cost": 0.6},
            {"pool": "default", "node_time": 10800.0},
        ],
        "worked": 8100.0,
        "lost": 900.0,
        "waited": 1800.25,
        "starting": 60.0,
        "gang_time": 36000.0,
        "copy": "6f2c2f0e-0000-4000-8000-00000000c0b1",
        "copied": {"counted_from": "2030-05-01T11:00:00Z", "counted_until": "2030-05-01T11:45:00Z"},
    },
}


@given(job_states)
def test_a_state_that_is_written_is_read_again(state: JobState) -> None:
    assert read_state(write_state(state)) == state


def test_the_text_of_each_field_and_value_stays_what_releases_write_and_read() -> None:
    state = read_state(json.dumps(WHOLE))
    assert isinstance(state, JobState)
    assert json.loads(write_state(state)) == WHOLE
    text, records = json.dumps(WHOLE), (JobState, FailbackAttempt, TimedFailure, Pace, Ledger, PoolUse)
    assert not [each.name for kind in records for each in fields(kind) if f'"{each.name}"' not in text]
    assert [*Phase] == [
        "Waiting", "Running", "Suspending", "Paused", "Away", "Stopped", "GivenUp", "Refused", "Finished",
    ]  # fmt: skip
    assert [*Purpose] == ["Failover", "Failback", "Yield", "Restart"]
    assert [*OutageKind] == ["Eviction", "Application", "Unexplained"]
    assert [*FailbackStage] == ["Reserving", "Tainting", "Checkpointing", "Moving"]


@given(st.text() | any_json("uid", "phase").map(json.dumps))
def test_any_annotation_can_be_read(text: str) -> None:
    assert isinstance(read_state(text), JobState | UnreadableState)


def test_a_missing_annotation_is_no_state_and_a_deeply_nested_one_unreadable() -> None:
    assert read_state(None) is None
    assert isinstance(read_state("[" * 100_000), UnreadableState), "it must not end the controller"


def test_fields_of_other_versions_are_read_and_defaults_omitted() -> None:
    newer = {**json.loads(write_state(running())), "mood": "good"}
    assert read_state(json.dumps(newer)) == running()
    older = json.loads(write_state(running(evictions=2)))
    del older["evictions"]
    assert read_state(json.dumps(older)) == running()
    assert set(json.loads(write_state(running()))) == {"uid", "phase", "pool", "rank", "since"}
    state = replace(running(), since=T0.astimezone())
    assert '"2030-05-01T12:00:00Z"' in write_state(state)


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
    assert isinstance(state, UnreadableState)
    assert said in state.problem


@pytest.mark.parametrize("missing", ["uid", "phase", "pool", "rank", "since"])
def test_a_missing_required_field_is_named(missing: str) -> None:
    broken = json.loads(write_state(running()))
    del broken[missing]
    assert read_state(json.dumps(broken)) == UnreadableState(problem=f"{missing} is missing")


@pytest.mark.parametrize("ledger", ["no ledger", {"uses": 3}, {**obj(WHOLE["ledger"]), "worked": -1}])
def test_a_ledger_that_cannot_be_read_costs_the_job_its_figures_and_not_its_position(ledger: object) -> None:
    state = read_record(json.dumps({**WHOLE, "ledger": ledger}), MARKER, UID)
    assert isinstance(state, JobState)
    assert (state.ledger, state.pool) == (None, "b-spot")


def newer(phase: str, marker: str, uid: str = UID) -> JobState | UnreadableState | None:
    """What this version reads of the annotations of a newer one, which has phases that it does not know."""
    return read_record(json.dumps({**WHOLE, "phase": phase}), marker, uid)


def test_a_job_that_an_unknown_version_suspended_is_resumed_on_its_pool() -> None:
    state = newer("Migrating", MARKER)
    decision = decide(state, observed_suspended(pool="a-spot"), policy())
    assert only(decision, Suspend).pool == "b-spot"
    assert "StateUnreadable" in reasons(decision)
    decision = decide(state, observed_suspended(pool="b-spot"), policy())
    assert only(decision, Resume).pool == "b-spot"
    decision = decide(state, observed_suspended(pool="b-spot", pods_remaining=1), policy())
    assert Resume not in kinds(decision), "two gangs would write one checkpoint"
    assert state_of(decision).phase is Phase.SUSPENDING


def test_a_job_with_an_unknown_marker_is_resumed_on_the_selected_pool() -> None:
    state = newer("Migrating", '{"format":2,"pools":["b-spot"]}')
    decision = decide(state, observed_suspended(pool="b-spot"), policy())
    assert only(decision, Resume).pool == "b-spot"
    decision = decide(state, observed_suspended(pool=None), policy())
    assert Resume not in kinds(decision)


def test_a_suspension_without_a_marker_or_of_another_job_is_its_users() -> None:
    for state in (newer("Halted", ""), newer("Migrating", MARKER, "copy")):
        decision = decide(state, observed_suspended(uid="copy", pool="b-spot"), policy())
        assert state_of(decision).phase is Phase.STOPPED, f"it is not ours to end: {state}"
    assert decide(newer("Migrating", MARKER), observed(), policy()).state is not None


@pytest.mark.parametrize("phase", Phase)
def test_only_a_suspension_that_ends_by_itself_is_marked(phase: Phase) -> None:
    is_marked = phase in {Phase.SUSPENDING, Phase.PAUSED, Phase.AWAY}
    marker = write_marker(suspending(phase=phase))
    assert marker == (MARKER if is_marked else "")


def test_a_state_patch_changes_only_the_state() -> None:
    assert patches.state_patch(jobset(), "the state") == {
        "metadata": {
            "resourceVersion": "41",
            "uid": JOB_UID,
            "annotations": {"fallback.holdfast.dev/state": "the state"},
        }
    }


def test_a_checkpoint_request_has_no_resource_version() -> None:
    assert patches.checkpoint_request(worker("a"), NOW) == {
        "metadata": {
            "uid": "uid-of-a",
            "annotations": {"fallback.holdfast.dev/checkpoint-requested": "2026-11-21T12:00:00Z"},
        }
    }


def test_a_job_without_checkpoint_request_has_none() -> None:
    assert patches.checkpoint_requested_at(jobset()) is None
    assert patches.checkpoints_on_request(jobset()) is False
    assert patches.checkpointed_at([worker("a")]) is None


def test_a_pod_whose_machine_is_gone_is_ended_as_by_garbage_collection() -> None:
    ready: Json = {"type": "Ready", "status": "True"}
    before: Json = {"type": "DisruptionTarget", "status": "False"}
    patch = patches.terminated_pod_status(worker("a", node="n1", conditions=[ready, before]), NOW)
    assert patch == {
        "metadata": {"uid": "uid-of-a"},
        "status": {
            "phase": "Failed",
            "conditions": [
                ready,
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "DeletionByPodGC",
                    "message": "Its machine is gone permanently.",
                    "lastTransitionTime": "2026-11-21T12:00:00Z",
                },
            ],
        },
    }


def test_the_label_of_the_tier_is_written_with_the_state_that_changes_it() -> None:
    job: Json = {"metadata": {"name": "train", "labels": {TIER: "a-spot"}}}
    patch = patches.state_patch(job, "state")
    assert patches.with_marks(patch, job, running()) == patch
    moved = patches.with_marks(patch, job, running(pool="b-spot"))
    assert obj(moved["metadata"])["labels"] == {TIER: "b-spot"}


def recorded(**changed: JsonValue) -> Json:
    """A JobSet with a record that its controller may have written, with other fields."""
    return jobset(annotations={STATE: json.dumps({**WHOLE, "uid": JOB_UID, **changed})})


def test_a_record_counts_only_with_the_uid_of_its_job() -> None:
    assert isinstance(recorded_state(recorded()), JobState)
    for uid in ("", "x", JOB_UID[:8], UID):
        assert recorded_state(recorded(uid=uid)) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rank", MOST_TIERS),
        ("rank", -1),
        ("evictions", 2**31),
        ("moves", -1),
        ("since", "1999-01-01T00:00:00Z"),
        ("waited", -1),
        ("pool", "p" * 254),
        ("failures", [{"kind": "Eviction", "at": "2030-05-01T11:00:00Z"}] * 400),
    ],
)
def test_a_record_counts_only_with_numbers_in_range(field: str, value: JsonValue) -> None:
    assert isinstance(recorded_state(recorded(**{field: value})), UnreadableState)


def test_a_successor_takes_over_the_record_of_the_rayjob_it_is_named_after() -> None:
    failed = rayjob(status="Failed", annotations={RECREATE: "true"})
    state = replace(running(evictions=2), uid=uid_of(failed))
    made = successor(failed, {}, write_state(state))
    created: Json = {**made, "metadata": {**obj(made["metadata"]), "uid": "the-new-one"}}
    assert recorded_state(created) == replace(state, uid="the-new-one")
    metadata = obj(created["metadata"])
    assert recorded_state({**created, "metadata": {**metadata, "name": "another"}}) is None
    annotations = {key: value for key, value in obj(metadata["annotations"]).items() if key != SUCCESSOR_OF}
    assert recorded_state({**created, "metadata": {**metadata, "annotations": annotations}}) is None
