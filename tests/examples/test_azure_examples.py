"""The examples for Azure: manifests as their users were promised they may write them, and training that resumes."""

from __future__ import annotations

import importlib.util
import json
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import yaml

from components.namespace.component import CHECKPOINTS, SERVICE_ACCOUNT
from rehearsal.scenes.aks import NOTICE_SECONDS
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from scheduling.json import Json

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "azure"
NAMES = ["jobset-spot", "jobset-spot-gpu", "rayjob-spot"]


def manifest(name: str) -> Json:
    return obj(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")))


def job_of(jobset: Json) -> Json:
    (replicated,) = objects(obj(jobset["spec"])["replicatedJobs"])
    return obj(obj(replicated["template"])["spec"])


def pod_of(owner: Json) -> Json:
    return obj(obj(owner["template"])["spec"])


def ray_cluster() -> Json:
    return obj(obj(manifest("rayjob-spot")["spec"])["rayClusterSpec"])


def training_pod(name: str) -> Json:
    """The spec of the pods that train."""
    if name.startswith("jobset"):
        return pod_of(job_of(manifest(name)))
    return pod_of(objects(ray_cluster()["workerGroupSpecs"])[0])


@pytest.mark.parametrize("name", NAMES)
def test_training_selects_spot_by_one_selector_in_both_ways_of_scaling(name: str) -> None:
    pod = training_pod(name)
    assert pod["nodeSelector"] == {"karpenter.sh/capacity-type": "spot"}, "the selector alone asks for spot"
    assert "tolerations" not in pod, "admission adds them, AKS's own for scale sets among them"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_said_that_admission_says(name: str) -> None:
    text = (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")
    assert "azure.workload.identity" not in text, "trainers are labelled by their account"
    assert "do-not-disrupt" not in text, "a drain on a notice would leave the pod out"


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu"])
def test_a_jobset_may_be_restarted_five_times_as_a_whole(name: str) -> None:
    jobset = manifest(name)
    assert obj(obj(jobset["spec"])["failurePolicy"])["maxRestarts"] == 5, "evictions among them"
    assert job_of(jobset)["backoffLimit"] == 0, "one pod alone cannot go on without the others"


def test_a_rayjob_may_be_tried_again_five_times_and_its_head_is_not_on_spot() -> None:
    assert obj(manifest("rayjob-spot")["spec"])["backoffLimit"] == 5, "evictions among them"
    head = pod_of(obj(ray_cluster()["headGroupSpec"]))
    assert "nodeSelector" not in head, "a head on spot takes the whole job with it when it goes"
    assert head["serviceAccountName"] == SERVICE_ACCOUNT, "it is one job"
    assert obj(obj(ray_cluster()["headGroupSpec"])["rayStartParams"])["num-cpus"] == "0", (
        "the training runs on the workers"
    )


@pytest.mark.parametrize("name", NAMES)
def test_training_reaches_its_namespaces_checkpoints(name: str) -> None:
    pod = training_pod(name)
    assert pod["serviceAccountName"] == SERVICE_ACCOUNT, "the one that has the right to them"
    (container,) = objects(pod["containers"])
    assert container["envFrom"] == [{"configMapRef": {"name": CHECKPOINTS}}], (
        "where CHECKPOINT_URI comes from"
    )


@pytest.mark.parametrize("name", NAMES)
def test_training_asks_for_little_time_after_a_notice(name: str) -> None:
    seconds = training_pod(name)["terminationGracePeriodSeconds"]
    assert isinstance(seconds, int), "in seconds"
    assert NOTICE_SECONDS <= seconds <= 10, "what is asked for beyond what Azure often gives is a false hope"


@dataclass(kw_only=True)
class Container:
    """A container of Blob Storage as far as training calls it."""

    contents: dict[str, str] = field(default_factory=dict[str, str])

    def upload_blob(self, name: str, data: str, *, overwrite: bool) -> None:
        assert overwrite, "a step that is done again is written again"
        self.contents[name] = data

    def download_blob(self, name: str) -> Blob:
        return Blob(text=self.contents[name])

    def delete_blob(self, name: str) -> None:
        del self.contents[name]

    def list_blob_names(self, *, name_starts_with: str) -> Iterator[str]:
        return (name for name in self.contents if name.startswith(name_starts_with))

    def steps(self) -> list[int]:
        return sorted(json.loads(body)["step"] for body in self.contents.values())


@dataclass(frozen=True, kw_only=True)
class Blob:
    """What is being read of a blob."""

    text: str

    def readall(self) -> bytes:
        return self.text.encode()


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The training program, of few steps."""
    monkeypatch.setenv("STEPS", "300")
    spec = importlib.util.spec_from_file_location("train", EXAMPLES / "train.py")
    assert spec, "the program is there"
    assert spec.loader, "and can be loaded"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def attempt(
    train: ModuleType, container: Container, *, run: str = "r", evicted_at: int = 10**9, saves: bool = True
) -> int:
    """Run the program until it ends or its machine is taken; return how many steps it took."""
    taken = 0

    def step() -> None:
        nonlocal taken
        taken += 1
        if taken > evicted_at:
            train.stop(signal.SIGTERM, None)

    checkpoints = cast("Any", train).Checkpoints(container, run)
    train.train(checkpoints, step=step, saves=saves)
    return taken


def test_training_finds_account_and_container_in_its_address(train: ModuleType) -> None:
    found = train.place("abfss://vision@checkpoints0a1b2c3d.dfs.core.windows.net")
    assert found == ("https://checkpoints0a1b2c3d.blob.core.windows.net", "vision"), (
        "as Azure's client wants them"
    )


def test_training_goes_on_from_where_it_was_stopped(train: ModuleType) -> None:
    container = Container()
    with pytest.raises(SystemExit) as stopped:
        attempt(train, container, evicted_at=100)
    assert stopped.value.code == 143, "ending well would mean that the job is done"
    assert attempt(train, container) == 200, "not one of the first hundred steps is done again"


def test_training_that_was_killed_without_a_word_goes_on_from_its_latest_checkpoint(
    train: ModuleType,
) -> None:
    container = Container()

    def killed() -> None:
        raise KeyboardInterrupt

    steps = iter([lambda: None] * 130 + [killed])
    checkpoints = cast("Any", train).Checkpoints(container, "r")
    with pytest.raises(KeyboardInterrupt):
        train.train(checkpoints, step=lambda: next(steps)())
    assert attempt(train, container) == 180, (
        "of 130 steps the last ten are done again: as often as that it happens"
    )


def test_checkpoints_lie_under_their_run_and_old_ones_are_removed(train: ModuleType) -> None:
    container = Container()
    attempt(train, container)
    assert all(name.startswith("r/") for name in container.contents), "runs are kept apart"
    assert container.steps() == [240, 270, 300], "nothing else ever ends a current blob: the program must"


def test_runs_do_not_take_each_others_checkpoints(train: ModuleType) -> None:
    container = Container()
    attempt(train, container, run="r")
    assert attempt(train, container, run="r2") == 300, "another run begins at the beginning"


def test_one_worker_writes_and_all_of_them_read(train: ModuleType) -> None:
    container = Container()
    attempt(train, container, saves=False)
    assert container.contents == {}, "the others hold the same weights"
    with pytest.raises(SystemExit):
        attempt(train, container, evicted_at=100)
    assert attempt(train, container, saves=False) == 200, "and go on from the same step"
