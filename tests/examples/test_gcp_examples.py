"""The examples for Google Cloud: manifests as their users were promised they may write them, and training that resumes."""

from __future__ import annotations

import importlib.util
import json
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import yaml

from components.namespace.component import CHECKPOINTS, service_account_of
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from scheduling.json import Json

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "gcp"
NAMES = ["jobset-spot", "jobset-spot-gpu", "rayjob-spot"]
STACKS = {"jobset-spot": "gcp-dev", "jobset-spot-gpu": "gcp-prod", "rayjob-spot": "gcp-dev"}


def manifest(name: str) -> Json:
    return obj(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")))


def job_of(jobset: Json) -> Json:
    (replicated,) = objects(obj(jobset["spec"])["replicatedJobs"])
    return obj(obj(replicated["template"])["spec"])


def ray_cluster() -> Json:
    return obj(obj(manifest("rayjob-spot")["spec"])["rayClusterSpec"])


def training_template(name: str) -> Json:
    """The template of the pods that train."""
    owner = (
        job_of(manifest(name)) if name.startswith("jobset") else objects(ray_cluster()["workerGroupSpecs"])[0]
    )
    return obj(owner["template"])


def head_template() -> Json:
    return obj(obj(ray_cluster()["headGroupSpec"])["template"])


def training_pod(name: str) -> Json:
    return obj(training_template(name)["spec"])


def safe_to_evict(template: Json) -> object:
    return obj(obj(template["metadata"])["annotations"])["cluster-autoscaler.kubernetes.io/safe-to-evict"]


@pytest.mark.parametrize("name", NAMES)
def test_training_selects_and_tolerates_spot_as_gke_spells_it(name: str) -> None:
    pod = training_pod(name)
    assert pod["nodeSelector"] == {
        "cloud.google.com/gke-spot": "true",
        "cloud.google.com/gke-provisioning": "spot",
    }, "both labels, which nodes of every spot pool have"
    assert pod["tolerations"] == [
        {"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
    ], "one toleration, word for word: elsewhere than here nobody adds it"


@pytest.mark.parametrize("name", NAMES)
def test_no_node_is_taken_from_under_a_pod_that_trains_because_it_is_half_empty(name: str) -> None:
    assert safe_to_evict(training_template(name)) == "false", (
        "the autoscaler would move it, and the step is lost"
    )


def test_rays_head_is_not_moved_and_not_on_spot() -> None:
    assert safe_to_evict(head_template()) == "false", "it would take the whole job with it"
    head = obj(head_template()["spec"])
    assert not {"nodeSelector", "tolerations"} & head.keys(), (
        "a head on spot takes the whole job with it when it goes"
    )
    assert obj(obj(ray_cluster()["headGroupSpec"])["rayStartParams"])["num-cpus"] == "0", (
        "the training runs on the workers"
    )


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu"])
def test_a_jobset_may_be_restarted_five_times_as_a_whole(name: str) -> None:
    jobset = manifest(name)
    assert obj(obj(jobset["spec"])["failurePolicy"])["maxRestarts"] == 5, "evictions among them"
    assert job_of(jobset)["backoffLimit"] == 0, "one pod alone cannot go on without the others"


def test_a_rayjob_may_be_tried_again_five_times() -> None:
    assert obj(manifest("rayjob-spot")["spec"])["backoffLimit"] == 5, "evictions among them"


@pytest.mark.parametrize("name", NAMES)
def test_training_reaches_its_namespaces_checkpoints(name: str) -> None:
    pod = training_pod(name)
    assert pod["serviceAccountName"] == service_account_of(STACKS[name]), "the one that has the right to them"
    (container,) = objects(pod["containers"])
    assert container["envFrom"] == [{"configMapRef": {"name": CHECKPOINTS}}], (
        "where CHECKPOINT_URI comes from"
    )


def test_rays_head_acts_as_its_workers_do() -> None:
    assert obj(head_template()["spec"])["serviceAccountName"] == service_account_of("gcp-dev"), (
        "it is one job"
    )


@pytest.mark.parametrize("name", NAMES)
def test_training_asks_for_no_more_time_than_gke_gives_after_the_notice(name: str) -> None:
    assert training_pod(name)["terminationGracePeriodSeconds"] == 15, (
        "of 30 seconds GKE keeps 15 for critical pods: what a pod hopes for beyond it does not get"
    )


def test_gpus_are_asked_for_and_their_taint_is_left_to_gke() -> None:
    pod = training_pod("jobset-spot-gpu")
    (container,) = objects(pod["containers"])
    assert obj(obj(container["resources"])["limits"])["nvidia.com/gpu"] == "8", "a whole machine"
    assert "nvidia.com/gpu" not in [toleration["key"] for toleration in objects(pod["tolerations"])], (
        "GKE gives the toleration to pods that ask for the resource"
    )


@dataclass(kw_only=True)
class Blob:
    """An object of Cloud Storage as far as training calls it."""

    bucket: Bucket
    name: str

    def upload_from_string(self, data: str) -> None:
        self.bucket.contents[self.name] = data.encode()

    def download_as_bytes(self) -> bytes:
        return self.bucket.contents[self.name]

    def delete(self) -> None:
        del self.bucket.contents[self.name]


@dataclass(kw_only=True)
class Bucket:
    """A bucket of Cloud Storage, and its client, as far as training calls them."""

    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def bucket(self, name: str) -> Bucket:
        assert name == "ckpt", f"{name} is not the bucket of the address"
        return self

    def blob(self, name: str) -> Blob:
        return Blob(bucket=self, name=name)

    def list_blobs(self, *, prefix: str) -> Iterator[Blob]:
        assert prefix.startswith("vision/"), f"{prefix!r} is not the namespace's to list"
        return (self.blob(name) for name in self.contents if name.startswith(prefix))

    def steps(self) -> list[int]:
        return sorted(json.loads(body)["step"] for body in self.contents.values())


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
    train: ModuleType, bucket: Bucket, *, run: str = "r", evicted_at: int = 10**9, saves: bool = True
) -> int:
    """Run the program until it ends or its machine is taken; return how many steps it took."""
    taken = 0

    def step() -> None:
        nonlocal taken
        taken += 1
        if taken > evicted_at:
            train.stop(signal.SIGTERM, None)

    checkpoints = cast("Any", train).Checkpoints(bucket, "gs://ckpt/vision", run)
    train.train(checkpoints, step=step, saves=saves)
    return taken


def test_training_goes_on_from_where_it_was_stopped(train: ModuleType) -> None:
    bucket = Bucket()
    with pytest.raises(SystemExit) as stopped:
        attempt(train, bucket, evicted_at=100)
    assert stopped.value.code == 143, "ending well would mean that the job is done"
    assert attempt(train, bucket) == 200, "not one of the first hundred steps is done again"


def test_training_that_was_killed_without_a_word_goes_on_from_its_latest_checkpoint(
    train: ModuleType,
) -> None:
    bucket = Bucket()

    def killed() -> None:
        raise KeyboardInterrupt

    steps = iter([lambda: None] * 130 + [killed])
    checkpoints = cast("Any", train).Checkpoints(bucket, "gs://ckpt/vision", "r")
    with pytest.raises(KeyboardInterrupt):
        train.train(checkpoints, step=lambda: next(steps)())
    assert attempt(train, bucket) == 180, "of 130 steps the last ten are done again"


def test_checkpoints_lie_in_the_namespaces_folder_and_old_ones_are_removed(train: ModuleType) -> None:
    bucket = Bucket()
    attempt(train, bucket)
    assert all(name.startswith("vision/r/") for name in bucket.contents), "no other folder may be written to"
    assert bucket.steps() == [180, 240, 300], "a bucket never ends a current object: the program must"


def test_runs_do_not_take_each_others_checkpoints(train: ModuleType) -> None:
    bucket = Bucket()
    attempt(train, bucket, run="r")
    assert attempt(train, bucket, run="r2") == 300, "another run begins at the beginning"


def test_one_worker_writes_and_all_of_them_read(train: ModuleType) -> None:
    bucket = Bucket()
    attempt(train, bucket, saves=False)
    assert bucket.contents == {}, "the others hold the same weights"
    with pytest.raises(SystemExit):
        attempt(train, bucket, evicted_at=100)
    assert attempt(train, bucket, saves=False) == 200, "and go on from the same step"
