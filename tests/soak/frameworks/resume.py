"""Training with Ray and TensorFlow as real processes, killed and continued.

    uv venv --python .venv/bin/python .tools/frameworks
    uv pip install --python .tools/frameworks -r tests/soak/frameworks/requirements.txt
    .venv/bin/pytest tests/soak/frameworks/resume.py

It is no part of `make test`: the two need 2 GB of packages, and Ray a minute to start. Its name keeps it from being
collected with the others.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.support.training_program import TRAINING, Attempt, Run

ROOT: Final = Path(__file__).parents[3]
PYTHON: Final = ROOT / ".tools" / "frameworks" / "bin" / "python"
EVERY: Final = 10
SETTINGS: Final = {
    "RUN": "run",
    "STEPS": "100",
    "STEPS_BETWEEN_CHECKPOINTS": str(EVERY),
    "WORKERS": "2",
    "CPUS_PER_WORKER": "0.5",
    "RAY_DEDUP_LOGS": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}


def run(program: str, folder: Path, environment: Mapping[str, str] | None = None) -> Run:
    return Run(
        program=TRAINING / program,
        python=PYTHON,
        environment={
            **SETTINGS,
            "SECONDS_PER_STEP": "0.05",
            "CHECKPOINT_URI": folder.as_uri(),
            **(environment or {}),
        },
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Attempt:
    """The same training without a framework."""
    return run("train.py", tmp_path_factory.mktemp("plain"), {"SECONDS_PER_STEP": "0"}).attempt()


@pytest.fixture
def ray(tmp_path: Path) -> Generator[Run]:
    # Ray's sockets lie in it, and a socket's path has 107 characters at most.
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    yield run("train_on_ray.py", tmp_path, {"RAY_TMPDIR": folder})
    shutil.rmtree(folder, ignore_errors=True)


def test_tensorflow_that_is_killed_again_and_again_ends_with_the_same_weights(
    tmp_path: Path, undisturbed: Attempt
) -> None:
    random, training, before = Random(1), run("train_with_tensorflow.py", tmp_path), 0
    for _ in range(3):
        attempt = training.attempt(end=signal.SIGKILL, after=random.randint(5, 25))
        assert attempt.code == -signal.SIGKILL, f"it was killed: {attempt.said}"
        assert attempt.began is not None, "it began"
        assert attempt.began % EVERY == 0, "at a checkpoint"
        assert before - EVERY <= attempt.began <= before, "the newest one"
        before = attempt.steps[-1]
    last = training.attempt()
    assert last.weights == undisturbed.weights, f"each step was counted once: {last.said}"


def test_tensorflow_that_is_asked_to_stop_loses_nothing(tmp_path: Path, undisturbed: Attempt) -> None:
    training = run("train_with_tensorflow.py", tmp_path)
    stopped = training.attempt(end=signal.SIGTERM, after=23)
    assert stopped.code == 128 + signal.SIGTERM, (
        f"ending well would mean that the job is done: {stopped.said}"
    )
    last = training.attempt()
    assert last.began == stopped.steps[-1], "it goes on from the very step"
    assert last.weights == undisturbed.weights, "and ends with the same weights"


def test_ray_train_goes_on_in_a_new_cluster_after_the_old_one_was_killed(
    ray: Run, undisturbed: Attempt
) -> None:
    killed = ray.attempt(end=signal.SIGKILL, after=70)
    assert killed.code == -signal.SIGKILL, f"driver and cluster were killed: {killed.said}"
    last = ray.attempt()
    assert last.began is not None, f"it began: {last.said}"
    assert last.began % EVERY == 0, "at a checkpoint"
    assert max(killed.steps) - 2 * EVERY <= last.began <= max(killed.steps), (
        "the last that Ray knew of; it hears of one a moment after it was written"
    )
    assert last.began > 0, "found by storage_path and name alone"
    assert last.weights == undisturbed.weights, "each step was counted once"


def test_ray_train_goes_on_when_a_worker_is_killed(ray: Run, undisturbed: Attempt) -> None:
    attempt = ray.attempt(end=signal.SIGKILL, after=70, victim=r"RayTrainWorker pid=(\d+)\S* continues from")
    assert attempt.code == 0, f"the driver saw it through: {attempt.said}"
    assert attempt.said.count("continues from step") == 2, "the workers were started again"
    assert attempt.weights == undisturbed.weights, "each step was counted once"


def test_ray_keeps_to_a_prefix_of_its_own() -> None:
    said = subprocess.run(
        [PYTHON, Path(__file__).with_name("own_prefix.py")],
        env={**os.environ, "PYTHONPATH": str(TRAINING), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, (
        f"a store that answers 403 to anything else is used all the same: {said.stderr}"
    )
    assert said.stdout.split() == ["NotFound", "File", "Directory", "NotFound"], "by listing"
