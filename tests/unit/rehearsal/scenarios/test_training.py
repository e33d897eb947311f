"""What a scenario reads of a training: its attempts, repeated steps, and whether the end is exact."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.scenarios.manifests import load_example
from pulumi_holdfast.rehearsal.scenarios.training import (
    TRAINING_HEADS,
    TrainingPlace,
    TrainingRun,
    attempt_of,
    node_costs,
    read_attempts,
    setting_of,
    trained,
    training_rows,
    undisturbed_weights,
    unmet_by_training,
)
from tests.support.builders.scenario_results import START, training_attempt, training_run
from tests.support.json_objects import obj, objects
from tests.support.training_program import TRAINING

CHECKOUT = TRAINING.parents[1]


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


def test_an_attempt_is_read_from_what_its_first_worker_printed() -> None:
    pod = training_attempt("a", 0, 0).pod
    complete = attempt_of(
        pod, "", "continues from step 3\nstep 4\nhas trained 4 steps: [0.5, 1.5]\nsummary: …\n"
    )
    assert (complete.began, complete.steps, complete.weights, complete.reached) == (3, (4,), "[0.5, 1.5]", 4)
    early = attempt_of(pod, "Evicted", "")
    assert (early.began, early.steps, early.weights, early.reached) == (None, (), None, 0)


def test_only_the_first_workers_with_a_log_are_attempts(tmp_path: Path) -> None:
    pod = training_attempt("a", 0, 0).pod
    place = TrainingPlace(logs=tmp_path, checkpoints=tmp_path, programs=TRAINING)
    log = tmp_path / "pods" / f"ns_{pod.name}_{pod.uid}" / "train" / "0.log"
    log.parent.mkdir(parents=True)
    log.write_text("continues from step 0\nstep 1\n")
    assert [each.steps for each in read_attempts(place, "ns", [pod])] == [(1,)]
    assert read_attempts(place, "other", [pod]) == ()


def test_a_training_finds_its_programs_and_an_empty_store(tmp_path: Path) -> None:
    place = TrainingPlace.of(Workspace(project_root=tmp_path), "local")
    old = place.checkpoints / "ns" / "run"
    old.mkdir(parents=True)
    account, store, programs = place.objects("ns")
    assert not old.exists()
    assert obj(account["metadata"])["name"] == "trainer"
    assert obj(store["data"])["CHECKPOINT_URI"] == (place.checkpoints / "ns").as_uri()
    assert "train_with_numpy.py" in obj(programs["data"])


def test_an_uninterrupted_training_of_two_workers_ends_with_weights(tmp_path: Path) -> None:
    jobset = load_example(CHECKOUT, "jobset-training-gpu")
    place = TrainingPlace(logs=tmp_path, checkpoints=tmp_path, programs=TRAINING)
    assert setting_of(jobset, "STEPS") == 700
    first, second = undisturbed_weights(place, jobset), undisturbed_weights(place, jobset)
    assert first == second


def test_the_example_of_a_training_asks_for_processes() -> None:
    (job,) = objects(obj(load_example(CHECKOUT, "jobset-training-gpu")["spec"])["replicatedJobs"])
    template = obj(obj(obj(job["template"])["spec"])["template"])
    assert obj(obj(template["metadata"])["labels"]) == {"holdfast.dev/runs": "process"}


def test_the_nodes_of_an_attempt_cost_what_their_pool_costs() -> None:
    began, until = START, START + timedelta(seconds=100)
    first = replace(
        training_attempt("spot", 0, 50).pod,
        owner="one",
        bound_at=began,
        ended_at=began + timedelta(seconds=40),
    )
    peer = replace(first, uid="peer")
    last = replace(training_attempt("a", 50, 100).pod, owner="two", bound_at=began + timedelta(seconds=60))
    attempts = [
        replace(training_attempt("spot", 0, 50), pod=first),
        replace(training_attempt("a", 50, 100), pod=last),
    ]
    costs = node_costs(attempts, [first, peer, last], {"spot": 0.1, "a": 1.0}, until)
    assert costs == (timedelta(seconds=8), timedelta(seconds=40))
    rows = training_rows(replace(training_run(*attempts), costs=costs, seconds_per_step=0.5))
    assert [row[-2] for row in rows] == ["8 s", "40 s"]
