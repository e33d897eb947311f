"""Reservations that a fault run leaves behind."""

from dataclasses import replace
from datetime import UTC, datetime

from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.state import FailbackAttempt, FailbackStage, JobState, Phase
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import RESERVED_FOR, STATE
from tests.soak.faults.leftovers import leftovers

AT = datetime(2026, 2, 1, tzinfo=UTC)
RUNNING = JobState(uid="u", phase=Phase.RUNNING, pool="b", rank=1, since=AT)
RETURNING = replace(RUNNING, failback=FailbackAttempt(pool="a", stage=FailbackStage.RESERVING, since=AT))


def job(state: JobState) -> Json:
    return {"metadata": {"name": "job", "uid": "u", "annotations": {STATE: write_state(state)}}}


def reserved(name: str, *, tainted: bool) -> Json:
    taints: list[Json] = [{"key": RESERVED_FOR, "value": "u", "effect": "NoSchedule"}] if tainted else []
    return {"metadata": {"name": name, "labels": {RESERVED_FOR: "u"}}, "spec": {"taints": [*taints]}}


def test_reservations_of_a_failback_under_way_are_no_leftovers() -> None:
    found = leftovers([job(RETURNING)], [reserved("hold-u-0", tainted=False)], [reserved("n", tainted=True)])
    assert found == []


def test_a_placeholder_a_taint_or_a_label_without_a_failback_is_a_leftover() -> None:
    nodes = [
        reserved("tainted", tainted=True),
        reserved("labeled", tainted=False),
        {"metadata": {"name": "free"}},
    ]
    for jobs in ([job(RUNNING)], []):
        found = leftovers(jobs, [reserved("hold-u-0", tainted=False)], nodes)
        assert [each.split()[2] for each in found] == ["hold-u-0", "tainted", "labeled"], (
            f"they keep capacity from every other job: {found}"
        )
