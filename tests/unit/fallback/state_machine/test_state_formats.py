"""Every format of the state that was ever written can be read, and a job that any version suspended is resumed.

`tests/fixtures/job_states` has a file for each: `v1-…` of the first format, `v2-…` with the pace of a job with a deadline,
`v3-…` with the ledger, `v4-…` with tiers in other clusters, `v5-…` with the ledger of a copy, `v6-…` with the
operator's status at a suspension, `v7-…` with a refusal; the others of versions that do not
exist yet. A format that changes gets new files; the old ones stay.
"""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from holdfast.fallback.state_machine.actions import Resume, Suspend
from holdfast.fallback.state_machine.decision import decide
from holdfast.fallback.state_machine.state import (
    FailbackAttempt,
    FailbackStage,
    JobState,
    Ledger,
    OutageKind,
    Pace,
    Phase,
    PoolUse,
    Purpose,
    UnreadableState,
)
from holdfast.fallback.state_machine.state_annotation import read_record, write_marker, write_state
from tests.support.builders.job_states import (
    UID,
    kinds,
    observed,
    observed_suspended,
    only,
    policy,
    reasons,
    state_of,
    suspending,
)
from tests.support.json_objects import obj

FOLDER = Path(__file__).parents[3] / "fixtures" / "job_states"
FILES = sorted(FOLDER.glob("*.json"))
WRITTEN = [path for path in FILES if path.name.startswith("v")]


def record(name: str, uid: str = UID) -> JobState | UnreadableState | None:
    """What the controller reads of a fixture."""
    document = obj(json.loads((FOLDER / f"{name}.json").read_text()))
    return read_record(json.dumps(document["state"]), str(document["marker"]), uid)


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_a_state_of_this_format_is_read_and_written_as_it_was(path: Path) -> None:
    state = record(path.stem)
    assert isinstance(state, JobState), f"a release has written it: {state}"
    written = {"state": json.loads(write_state(state)), "marker": write_marker(state)}
    assert written == json.loads(path.read_text()), "the release before reads what this one writes"


def test_the_fixtures_have_every_field_and_value() -> None:
    texts = " ".join(path.read_text() for path in WRITTEN)
    values = {each.value for kind in (Phase, Purpose, FailbackStage, OutageKind) for each in kind}
    kinds_with_fields = (JobState, FailbackAttempt, Pace, Ledger, PoolUse)
    names = {each.name for kind in kinds_with_fields for each in fields(kind)}
    missing = {each for each in {*values, *names} if f'"{each}"' not in texts}
    assert not missing, "a value that no file has could be dropped unnoticed"


def test_a_ledger_of_another_format_costs_the_job_its_figures_and_not_its_position() -> None:
    document = obj(json.loads((FOLDER / "v3-suspending-with-ledger.json").read_text()))
    for ledger in ("of another format", {"uses": 3}, {**obj(obj(document["state"])["ledger"]), "worked": -1}):
        state = read_record(
            json.dumps({**obj(document["state"]), "ledger": ledger}), str(document["marker"]), UID
        )
        assert isinstance(state, JobState), f"the move to its pool is completed: {state}"
        assert (state.ledger, state.pool) == (None, "b-spot"), "only the ledger begins again"


def test_a_job_that_an_unknown_version_suspended_is_resumed_on_its_pool() -> None:
    state = record("newer-state-suspended")
    decision = decide(state, observed_suspended(pool="a-spot"), policy())
    assert only(decision, Suspend).pool == "b-spot", (
        "the marker names the pool, whatever the template selects"
    )
    assert "StateUnreadable" in reasons(decision), "an Event says that counting starts again"
    decision = decide(state, observed_suspended(pool="b-spot"), policy())
    assert only(decision, Resume).pool == "b-spot", "no job of ours stays suspended after a rollback"
    decision = decide(state, observed_suspended(pool="b-spot", pods_remaining=1), policy())
    assert Resume not in kinds(decision), "two gangs would write one checkpoint"
    assert state_of(decision).phase is Phase.SUSPENDING, "the move is recorded in the format of this version"


def test_a_job_with_an_unknown_marker_is_resumed_on_the_selected_pool() -> None:
    decision = decide(record("newer-state-and-marker"), observed_suspended(pool="b-spot"), policy())
    assert only(decision, Resume).pool == "b-spot", "the template was set with the suspension"
    decision = decide(record("newer-state-and-marker"), observed_suspended(pool=None), policy())
    assert Resume not in kinds(decision), "no pool is known to resume it on"


def test_a_suspension_without_a_marker_or_of_another_job_is_its_users() -> None:
    for state in (record("newer-state-stopped-by-its-user"), record("newer-state-suspended", "copy")):
        decision = decide(state, observed_suspended(uid="copy", pool="b-spot"), policy())
        assert state_of(decision).phase is Phase.STOPPED, f"it is not ours to end: {state}"
    assert decide(record("newer-state-suspended"), observed(), policy()).state is not None, "it runs already"


@pytest.mark.parametrize("phase", Phase)
def test_only_a_suspension_that_ends_by_itself_is_marked(phase: Phase) -> None:
    is_marked = phase in {Phase.SUSPENDING, Phase.PAUSED, Phase.AWAY}
    marker = write_marker(suspending(phase=phase))
    assert marker == (f"v1 {UID} b-spot" if is_marked else ""), "a job that is given up stays suspended"
