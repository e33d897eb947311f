"""What programs write, print and leave behind is bounded by their pod."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import psutil
import pytest

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.control_plane.configuration import KubeconfigCluster
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner.training import container as containers
from pulumi_holdfast.rehearsal.operator_runner.training import pod as module
from pulumi_holdfast.rehearsal.operator_runner.training.pod import Machine, TrainingPod
from pulumi_holdfast.rehearsal.operator_runner.training.status import PodOutcome
from pulumi_holdfast.rehearsal.operator_runner.training.volumes import VolumeSources
from tests.support.json_objects import obj, objects


@dataclass(kw_only=True)
class Api:
    """The API server's part: it keeps the statuses of a pod."""

    statuses: list[Json] = field(default_factory=list[Json])

    def list(self, *_: object, **__: object) -> list[Json]:
        return []

    def under(self, _: object) -> "Api":
        return self

    def patch_status(self, _version: str, _kind: str, _name: str, patch: Json, _namespace: str) -> Json:
        self.statuses.append(obj(patch["status"]))
        return pod_of("", status=patch["status"])

    @property
    def last(self) -> tuple[object, object, object]:
        """Phase, reason and exit code at the end."""
        end = self.statuses[-1]
        (only,) = objects(end["containerStatuses"])
        return end["phase"], end["reason"], obj(obj(only["state"]).get("terminated")).get("exitCode")


def pod_of(code: str, **fields: JsonValue) -> Json:
    mounts: list[JsonValue] = [{"name": "scratch", "mountPath": "/scratch"}]
    container: Json = {
        "name": "train",
        "image": "python:3",
        "command": ["python", "-c", code],
        "volumeMounts": mounts,
    }
    spec: Json = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "8Mi"}}],
    }
    return {
        "metadata": {"name": "train", "namespace": "vision", "uid": "uid-of-train"},
        "spec": spec,
        **fields,
    }


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setattr(module, "_STORAGE_SECONDS", 0.05)
    monkeypatch.setattr(containers, "_LOG_SECONDS", 0.05)
    return Api()


def run(api: Api, folder: Path, code: str) -> None:
    """Run a pod of this program to its end."""
    client = cast("KubeClient", api)
    cluster = KubeconfigCluster(server="https://127.0.0.1:6443", authority=b"")

    def rejects(_: Json) -> PodOutcome | None:
        return None

    machine = Machine(
        client=client,
        sources=VolumeSources(client=client, cluster=cluster, allowed=folder),
        folder=folder / "training",
        logs=folder / "logs",
        mark=str(folder),
        rejects=rejects,
    )
    asyncio.run(TrainingPod(pod_of(code), machine).run())


def test_a_program_that_fills_its_volume_is_evicted_without_a_disruption(api: Api, tmp_path: Path) -> None:
    fills = "file = open('/scratch/full', 'wb')\nwhile True: file.write(bytes(2**18)); file.flush()"
    run(api, tmp_path, fills)
    assert api.last == ("Failed", "Evicted", 137)
    assert api.statuses[-1]["message"] == 'Usage of EmptyDir volume "scratch" exceeds the limit "8Mi".'
    assert "DisruptionTarget" not in str(api.statuses)
    assert not (tmp_path / "training" / "uid-of-train").exists()


def test_a_process_that_has_left_its_session_ends_with_its_container(api: Api, tmp_path: Path) -> None:
    child = "import sys, time; time.sleep(300)"
    leaves = (
        "import subprocess, sys;"
        f"print(subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True).pid, flush=True)"
    )
    run(api, tmp_path, leaves)
    assert api.last[0] == "Succeeded"
    (log,) = (tmp_path / "logs").glob("pods/*/train/0.log")
    left = int(log.read_text())
    assert not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE


def test_of_a_long_log_the_end_stays(api: Api, tmp_path: Path) -> None:
    prints = (
        "import os, sys, time\n"
        "for _ in range(64): sys.stdout.write(('x' * 1023 + '\\n') * 1024)\n"
        "sys.stdout.flush()\n"
        "while os.fstat(1).st_size > 20_000_000: time.sleep(0.05)\n"
        "print('last')"
    )
    run(api, tmp_path, prints)
    (log,) = (tmp_path / "logs").glob("pods/*/train/0.log")
    assert log.stat().st_size < 20_000_000
    assert log.read_text().endswith("last\n")
