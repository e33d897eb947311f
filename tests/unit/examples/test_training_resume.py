"""Training as real processes: killed without a word, or told to stop, and continued. No step is lost or done twice."""

import signal
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from tests.support.training_program import TRAINING, Attempt, Run

#: Far more than four attempts take before their signal: on a loaded machine it comes many steps late.
STEPS = 600
ALL = tuple(range(1, STEPS + 1))


def run(folder: Path, *, every: int = 10, also: Mapping[str, str] | None = None) -> Run:
    environment: Mapping[str, str] = {
        "CHECKPOINT_URI": folder.as_uri(),
        "RUN": "run",
        "STEPS": str(STEPS),
        "STEPS_BETWEEN_CHECKPOINTS": str(every),
        "SECONDS_PER_STEP": "0.001",
        **(also or {}),
    }
    return Run(program=TRAINING / "train.py", environment=environment)


def newest(folder: Path) -> int:
    """The step of the newest checkpoint; 0 where there is none."""
    return max((int(path.stem.removeprefix("step-")) for path in folder.glob("run/step-*.json")), default=0)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Attempt:
    return run(tmp_path_factory.mktemp("undisturbed")).attempt()


def test_undisturbed_training_takes_each_step_once(undisturbed: Attempt) -> None:
    assert (undisturbed.began, undisturbed.steps) == (0, ALL)
    assert undisturbed.code == 0


@pytest.mark.parametrize(("seed", "every"), [(1, 10), (2, 10), (3, 1)])
def test_training_that_is_killed_again_and_again_ends_with_the_weights_of_one_that_was_not(
    seed: int, every: int, tmp_path: Path, undisturbed: Attempt
) -> None:
    random, training = Random(seed), run(tmp_path, every=every)
    before = 0
    for _ in range(4):
        kept = newest(tmp_path)
        attempt = training.attempt(end=signal.SIGKILL, after=random.randint(5, 35))
        assert attempt.code == -signal.SIGKILL, f"seed {seed}: it was killed, {attempt.said}"
        assert attempt.began == kept, f"seed {seed}: it goes on from the newest checkpoint"
        assert before - kept <= every, f"seed {seed}: and nothing before that is lost"
        before = attempt.steps[-1]
    last = training.attempt()
    assert last.weights == undisturbed.weights, f"seed {seed}: each step is counted once"


def test_training_that_is_asked_to_stop_loses_nothing(tmp_path: Path, undisturbed: Attempt) -> None:
    random, training = Random(7), run(tmp_path)
    taken: list[int] = []
    for _ in range(3):
        attempt = training.attempt(end=signal.SIGTERM, after=random.randint(5, 35))
        assert attempt.code == 128 + signal.SIGTERM, "ending well would mean that the job is done"
        taken += attempt.steps
        assert newest(tmp_path) == taken[-1]
    last = training.attempt()
    assert (*taken, *last.steps) == ALL
    assert last.weights == undisturbed.weights


def test_training_that_was_done_has_nothing_to_do(tmp_path: Path, undisturbed: Attempt) -> None:
    run(tmp_path).attempt()
    again = run(tmp_path).attempt()
    assert (again.code, again.steps) == (0, ()), "a gang that restarts because a peer failed at the very end"
    assert again.weights == undisturbed.weights


def test_a_worker_that_does_not_write_goes_on_where_the_first_one_was(tmp_path: Path) -> None:
    first = run(tmp_path).attempt(end=signal.SIGTERM, after=20)
    second = run(tmp_path, also={"JOB_COMPLETION_INDEX": "1"}).attempt(end=signal.SIGTERM, after=20)
    assert second.began == first.steps[-1]
    assert second.code == 128 + signal.SIGTERM
    assert newest(tmp_path) == first.steps[-1]


def test_half_a_checkpoint_is_never_taken(tmp_path: Path, undisturbed: Attempt) -> None:
    run(tmp_path).attempt(end=signal.SIGTERM, after=20)
    kept = newest(tmp_path)
    (tmp_path / "run" / f".step-{kept + 5:09d}.json.17").write_text('{"step": 1')
    (tmp_path / "run" / f"step-{kept + 1:09d}.json").write_text('{"step": 1')
    last = run(tmp_path).attempt()
    assert last.began == kept
    assert "is not a valid checkpoint" in last.said
    assert last.weights == undisturbed.weights
    assert not list(tmp_path.glob("run/.step-*"))


@pytest.mark.parametrize(
    ("given", "said"),
    [({"CHECKPOINT_URI": "ftp://somewhere"}, "ftp://somewhere"), ({"CHECKPOINT_URI": ""}, '""')],
)
def test_an_address_that_is_none_is_a_sentence(given: Mapping[str, str], said: str, tmp_path: Path) -> None:
    attempt = run(tmp_path, also=given).attempt()
    assert attempt.code == 1, "nothing was trained that could not be kept"
    assert said in attempt.said
    assert "Traceback" not in attempt.said
