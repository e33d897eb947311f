"""A drill takes a machine that Karpenter made, without notice, and finds what the job's program lost."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

import pytest

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import name_of, uid_of
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import PROGRESS
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.background import repeating
from tests.support.clusters.control_plane import CHECKOUT
from tests.support.clusters.fallback import NAMESPACE, LadderCluster
from tests.support.clusters.fallback_jobs import Ladder, applied, node_of, pods_of, real_jobset, tier
from tests.support.json_objects import obj

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

#: The program's last report before the machine is gone, its latest checkpoint, and all of its steps.
REPORTED: Final = 437
CHECKPOINT: Final = 430
STEPS: Final = 1000


class Program:
    """A training program that reports 437 steps, and after a restart 430 until the drill has seen it; then it goes on."""

    def __init__(self, client: KubeClient, job: str) -> None:
        self._client = client
        self._job = job
        self._first: frozenset[str] = frozenset()
        self._step = CHECKPOINT
        self.may_go_on = threading.Event()

    @contextmanager
    def running(self) -> Generator[Program]:
        """Report for the length of the block; the first gang has reported when it begins."""
        self._first = frozenset(map(_uid, self._gang()))
        self._report()
        with repeating(self._report_if_there, 0.3):
            yield self

    def _report_if_there(self) -> None:
        with suppress(ApiError):  # a pod may be gone by now
            self._report()

    def _report(self) -> None:
        gang = self._gang()
        is_first = any(_uid(pod) in self._first for pod in gang)
        if not is_first:
            self._step += self.may_go_on.is_set() * 3
        for pod in gang:
            report = f"{REPORTED if is_first else self._step}/{STEPS}"
            patch: Json = {"metadata": {"annotations": {PROGRESS: report}}}
            self._client.merge_patch("v1", "Pod", name_of(pod), patch, namespace=NAMESPACE)

    def _gang(self) -> list[Json]:
        return [
            pod
            for pod in pods_of(self._client, self._job)
            if obj(pod["status"]).get("phase") == "Running"
            and not obj(pod["metadata"]).get("deletionTimestamp")
        ]


def _uid(pod: Json) -> str:
    return uid_of(pod)


def drilled(kubeconfig: str, job: str, node: str, program: Program) -> Json:
    """Run the drill as its user does; the program goes on when the drill has seen its first report after the restart."""
    command = [
        *(sys.executable, "-m", "pulumi_holdfast.cli.kubectl", "drill", f"jobset/{job}", "--vanish", "--yes"),
        *("--node", node, "--timeout", "5m", "-o", "json", "-n", NAMESPACE, "--kubeconfig", kubeconfig),
    ]
    with subprocess.Popen(
        command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            if line.rstrip().endswith("] reported"):
                program.may_go_on.set()
        printed = process.stdout.read()
    assert process.returncode == 0, f"{lines}{printed}"
    return obj(json.loads(printed))


def test_a_drill_without_notice_finds_the_lost_steps_on_machines_of_karpenter(
    cluster: LadderCluster, ladder: Ladder
) -> None:
    ladder.says(tier("spot-a", maxFailures=3), tier("cpu"))
    client = ladder.client
    with applied(client, real_jobset("drilled")) as name:
        ladder.wait_running(name, "spot-a")
        pods = pods_of(client, name)
        node = node_of(pods[0])
        ladder.wait(
            lambda: all(obj(pod["status"]).get("phase") == "Running" for pod in pods_of(client, name)),
            name,
            "it trains",
        )
        with Program(client, name).running() as program:
            found = drilled(str(cluster.kubeconfig), name, node, program)
        assert (found["progressBefore"], found["progressAfter"]) == (REPORTED, CHECKPOINT)
        assert found["stepsLost"] == REPORTED - CHECKPOINT
        assert found["recovered"], "it was followed until the progress was past the old value"
        assert client.get("v1", "Node", node) is None
        claims = client.list("karpenter.sh/v1", "NodeClaim")
        assert node not in [obj(each.get("status")).get("nodeName") for each in claims]
        kept = ladder.wait_running(name, "spot-a")
        assert (kept["evictions"], kept.get("moves", 0)) == (1, 0)
