"""What a scenario reads of a training: its attempts, repeated steps, and whether the end is exact."""

import pytest

from pulumi_holdfast.rehearsal.scenarios.training import (
    TRAINING_HEADS,
    TrainingRun,
    trained,
    training_rows,
    unmet_by_training,
)
from tests.support.builders.scenario_results import training_attempt, training_run


def test_a_training_that_repeats_only_lost_steps_is_exact() -> None:
    run = training_run()
    assert unmet_by_training(run) == []
    assert run.repeated == (0, 10, 0)
    assert trained(run) == "100 steps in 3 attempts, 10 repeated; the weights of an uninterrupted run"
    rows = training_rows(run)
    assert {len(row) for row in (TRAINING_HEADS, *rows)} == {len(TRAINING_HEADS)}
    assert [row[-1] for row in rows] == ["DeletionByPodGC", "moved", "complete"]


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        (
            training_run(training_attempt("a", 0, 30), training_attempt("a", 40, 100, weights="[1.0, 2.0]")),
            "attempt 2 skipped the steps 31 to 40",
        ),
        (
            training_run(training_attempt("a", 0, 100, weights="[1.0, 2.1]")),
            "the weights are [1.0, 2.1] and not",
        ),
        (training_run(training_attempt("a", 0, 60)), "the training reached step 60 of 100"),
        (TrainingRun(steps=100, attempts=(), undisturbed="[1.0]"), "the weights are None"),
    ],
)
def test_a_training_that_is_not_exact_is_reported(run: TrainingRun, complaint: str) -> None:
    assert any(complaint in problem for problem in unmet_by_training(run))
