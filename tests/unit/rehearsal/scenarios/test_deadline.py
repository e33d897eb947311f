"""The deadline scenario: its expectations, its line, and what it writes on the job."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pulumi_holdfast.controller.jobs.base_observation import deadline_of
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.scenarios.deadline import (
    DEADLINE_SECONDS,
    WORK_SECONDS,
    DeadlineRun,
    KubectlPlugin,
    deadline_kept,
    unmet_by_deadline,
    with_deadline,
)
from tests.support.builders.scenario_results import START, move

RUN = DeadlineRun(
    jobset="train",
    pools=("b-spot", "a"),
    began_at=START,
    finish_by=START + timedelta(seconds=DEADLINE_SECONDS),
    ended_at=START + timedelta(seconds=DEADLINE_SECONDS - 60),
    moves=(move("b-spot", "a", 40),),
    overlaps=(),
    table="JOB\njobset/train",
)


def test_a_job_that_waits_moves_and_ends_in_time_is_as_expected() -> None:
    assert unmet_by_deadline(RUN) == []
    assert deadline_kept(RUN) == "waited 40 s for spot, then a; 60 s before its deadline"


@pytest.mark.parametrize(
    ("seen", "complaint"),
    [
        (replace(RUN, moves=()), "its moves were []"),
        (replace(RUN, ended_at=RUN.finish_by + timedelta(seconds=9)), "it ended 9 s after its deadline"),
        (replace(RUN, overlaps=("p together with q",)), "two gangs ran together: p together with q"),
        (replace(RUN, table="No job"), "`kubectl holdfast jobs` does not show it: No job"),
    ],
)
def test_anything_else_is_reported(seen: DeadlineRun, complaint: str) -> None:
    assert any(complaint in problem for problem in unmet_by_deadline(seen))


def test_the_controller_reads_the_deadline_that_is_written() -> None:
    found = deadline_of(with_deadline({"metadata": {"name": "train", "annotations": {"a": "b"}}}, START), ())
    assert found is not None
    assert found.finish_by == RUN.finish_by
    assert found.work == timedelta(seconds=WORK_SECONDS)


def test_a_plugin_that_fails_names_the_command(tmp_path: Path) -> None:
    plugin = KubectlPlugin(folder=tmp_path, kubeconfig=tmp_path / "none")
    with pytest.raises(RehearsalError, match="`kubectl holdfast jobs --namespace n` failed; run"):
        plugin.jobs("n")
