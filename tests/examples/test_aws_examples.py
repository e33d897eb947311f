"""The examples for AWS: manifests as their users were promised they may write them, and training that resumes."""

# ruff: noqa: N803 - the parameters of S3's client have S3's names

from __future__ import annotations

import importlib.util
import io
import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import yaml

from components.namespace.component import CHECKPOINTS, SERVICE_ACCOUNT
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    from scheduling.json import Json

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "aws"
SPOT = {"karpenter.sh/capacity-type": "spot"}


def manifest(name: str) -> Json:
    return obj(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")))


def job_of(jobset: Json) -> Json:
    (replicated,) = objects(obj(jobset["spec"])["replicatedJobs"])
    return obj(obj(replicated["template"])["spec"])


def pod_of(owner: Json) -> Json:
    return obj(obj(owner["template"])["spec"])


def training_pod(name: str) -> Json:
    """The spec of the pods that train."""
    if name.startswith("jobset"):
        return pod_of(job_of(manifest(name)))
    return pod_of(objects(ray_cluster()["workerGroupSpecs"])[0])


def ray_cluster() -> Json:
    return obj(obj(manifest("rayjob-spot")["spec"])["rayClusterSpec"])


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu", "rayjob-spot"])
def test_training_selects_spot_by_one_selector(name: str) -> None:
    pod = training_pod(name)
    assert pod["nodeSelector"] == SPOT, "the selector alone asks for spot"
    assert "tolerations" not in pod, "admission adds them: users need not know the taints"


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu", "rayjob-spot"])
def test_no_training_pod_is_kept_out_of_the_drain(name: str) -> None:
    assert "do-not-disrupt" not in (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"), (
        "Karpenter would skip the pod on the notice, and it would get no SIGTERM"
    )


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu"])
def test_a_jobset_may_be_restarted_five_times_as_a_whole(name: str) -> None:
    jobset = manifest(name)
    assert obj(obj(jobset["spec"])["failurePolicy"])["maxRestarts"] == 5, "evictions among them"
    assert job_of(jobset)["backoffLimit"] == 0, "one pod alone cannot go on without the others"


def test_a_rayjob_may_be_tried_again_five_times_and_its_head_is_not_on_spot() -> None:
    assert obj(manifest("rayjob-spot")["spec"])["backoffLimit"] == 5, "evictions among them"
    head = pod_of(obj(ray_cluster()["headGroupSpec"]))
    assert "nodeSelector" not in head, "a head on spot takes the whole job with it when it goes"
    assert obj(obj(ray_cluster()["headGroupSpec"])["rayStartParams"])["num-cpus"] == "0", (
        "the training runs on the workers"
    )


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu", "rayjob-spot"])
def test_training_reaches_its_namespaces_checkpoints(name: str) -> None:
    pod = training_pod(name)
    assert pod["serviceAccountName"] == SERVICE_ACCOUNT, "the one that has the right to them"
    (container,) = objects(pod["containers"])
    assert container["envFrom"] == [{"configMapRef": {"name": CHECKPOINTS}}], (
        "where CHECKPOINT_URI comes from"
    )


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu", "rayjob-spot"])
def test_training_has_time_for_a_last_checkpoint_and_no_more_than_the_notice_gives(name: str) -> None:
    seconds = training_pod(name)["terminationGracePeriodSeconds"]
    assert isinstance(seconds, int), "in seconds"
    assert 30 < seconds < 120, "EC2 gives two minutes, of which draining takes some"


class Bucket:
    """S3 as far as training calls it."""

    def __init__(self) -> None:
        self.contents: dict[tuple[str, str], bytes] = {}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:
        self.contents[Bucket, Key] = Body

    def get_object(self, *, Bucket: str, Key: str) -> Mapping[str, object]:
        return {"Body": io.BytesIO(self.contents[Bucket, Key])}

    def delete_object(self, *, Bucket: str, Key: str) -> None:
        del self.contents[Bucket, Key]

    def get_paginator(self, operation: str) -> Bucket:
        assert operation == "list_objects_v2", f"{operation} is not what lists"
        return self

    def paginate(self, *, Bucket: str, Prefix: str) -> Iterator[Mapping[str, object]]:
        """Two keys a page: a run that kept many checkpoints must see the last of them."""
        keys = [key for bucket, key in self.contents if bucket == Bucket and key.startswith(Prefix)]
        for start in range(0, len(keys), 2):
            yield {"Contents": [{"Key": key} for key in keys[start : start + 2]]}
        yield {}

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

    checkpoints = cast("Any", train).Checkpoints(bucket, "s3://ckpt/vision", run)
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
    checkpoints = cast("Any", train).Checkpoints(bucket, "s3://ckpt/vision", "r")
    with pytest.raises(KeyboardInterrupt):
        train.train(checkpoints, step=lambda: next(steps)())
    assert attempt(train, bucket) == 180, "of 130 steps the last ten are done again"


def test_checkpoints_lie_under_the_namespaces_prefix_and_old_ones_are_removed(train: ModuleType) -> None:
    bucket = Bucket()
    attempt(train, bucket)
    assert all(key.startswith("vision/r/") for _, key in bucket.contents), "no other prefix may be written to"
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
