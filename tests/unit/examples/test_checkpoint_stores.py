"""Checkpoints lie where CHECKPOINT_URI says, in each cloud's store, and training resumes from any of them."""

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from tests.support.fakes.object_stores import BlobContainer, CloudStorageBucket, S3Bucket
from tests.support.training_program import loaded

ADDRESSES = {
    "s3": "s3://ckpt/vision",
    "gs": "gs://ckpt/vision",
    "abfss": "abfss://vision@checkpoints0a1b2c3d.blob.core.windows.net",
}
Bucket = S3Bucket | CloudStorageBucket | BlobContainer


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """One cloud's store, with the programs that use it."""

    bucket: Bucket
    address: str
    checkpoints: Any
    train: Any

    def of(self, run: str = "r") -> Any:
        """The checkpoints of a run."""
        return self.checkpoints.checkpoints_of(self.address, run)

    def steps(self) -> list[int]:
        """The steps that are kept."""
        return sorted(json.loads(body)["step"] for body in self.bucket.contents.values())

    def attempt(self, *, run: str = "r", stopped_after: int | None = None, saves: bool = True) -> int:
        """Train until the end or until it is stopped; return how many steps it took."""
        notice, taken = self.train.Notice(), 0

        def step(state: dict[str, object]) -> dict[str, object]:
            nonlocal taken
            taken += 1
            notice.is_heard = taken == stopped_after
            return self.train.next_state(state)

        if stopped_after is None:
            self.train.train(self.of(run), saves=saves, notice=notice, step=step)
        else:
            with pytest.raises(SystemExit) as stopped:
                self.train.train(self.of(run), saves=saves, notice=notice, step=step)
            assert stopped.value.code == 143, "ending well would mean that the job is done"
        return taken


def clients(bucket: Bucket) -> dict[str, ModuleType]:
    """The clouds' packages, of which each makes a client of the one bucket."""

    def module(name: str, **members: Callable[..., object] | type | ModuleType) -> ModuleType:
        made = ModuleType(name)
        for member, value in members.items():
            setattr(made, member, value)
        return made

    def container(account: str, name: str, credential: object) -> Bucket:
        assert account == "https://checkpoints0a1b2c3d.blob.core.windows.net"
        assert name == "vision"
        assert isinstance(credential, WorkloadIdentity)
        return bucket

    class WorkloadIdentity:
        """A token of the pod's service account."""

    def s3(service: str) -> Bucket:
        assert service == "s3"
        return bucket

    storage = module("google.cloud.storage", Client=lambda: bucket)
    return {
        "boto3": module("boto3", client=s3),
        "google": module("google"),
        "google.cloud": module("google.cloud", storage=storage),
        "google.cloud.storage": storage,
        "azure": module("azure"),
        "azure.identity": module("azure.identity", WorkloadIdentityCredential=WorkloadIdentity),
        "azure.storage": module("azure.storage"),
        "azure.storage.blob": module("azure.storage.blob", ContainerClient=container),
    }


@pytest.fixture(params=[("s3", S3Bucket), ("gs", CloudStorageBucket), ("abfss", BlobContainer)], ids=str)
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    scheme, kind = request.param
    bucket = kind()
    for name, client in clients(bucket).items():
        monkeypatch.setitem(sys.modules, name, client)
    train = loaded(monkeypatch, "train", {"STEPS": "300", "SECONDS_PER_STEP": "0"})
    return Cloud(
        bucket=bucket,
        address=ADDRESSES[scheme],
        train=train,
        checkpoints=importlib.import_module("checkpoints"),
    )


def test_training_goes_on_from_where_it_was_stopped(cloud: Cloud) -> None:
    cloud.attempt(stopped_after=100)
    assert cloud.attempt() == 200


def test_training_that_was_killed_goes_on_from_its_newest_checkpoint(cloud: Cloud) -> None:
    class Killed(BaseException):
        pass

    def step(state: dict[str, int]) -> dict[str, object]:
        if state["step"] == 130:
            raise Killed
        return cloud.train.next_state(state)

    with pytest.raises(Killed):
        cloud.train.train(cloud.of(), step=step)
    assert cloud.attempt() == 180


def test_old_checkpoints_are_removed(cloud: Cloud) -> None:
    cloud.attempt()
    assert cloud.steps() == [180, 240, 300], "nothing else ever ends a current object: the program must"


def test_runs_do_not_take_each_others_checkpoints(cloud: Cloud) -> None:
    cloud.attempt(run="r")
    assert cloud.attempt(run="r2") == 300
    assert len({name.rpartition("/")[0] for name in cloud.bucket.contents}) == 2


def test_one_worker_writes_and_all_of_them_read(cloud: Cloud) -> None:
    cloud.attempt(saves=False)
    assert cloud.bucket.contents == {}
    cloud.attempt(stopped_after=100)
    assert cloud.attempt(saves=False) == 200


def test_a_step_that_is_done_again_is_written_again(cloud: Cloud) -> None:
    cloud.of().save({"step": 60, "weights": [0.0, 0.0]})
    cloud.of().save({"step": 60, "weights": [1.0, 0.0]})
    assert cloud.of().latest() == {"step": 60, "weights": [1.0, 0.0]}
