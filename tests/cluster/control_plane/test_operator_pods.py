"""A pod of an operator is backed by a real process, and its status reflects that process."""

import base64
import json
from collections.abc import Callable, Generator
from dataclasses import dataclass

import psutil
import pytest

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner.operator_runner import RunnerLayout
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import restarts_of
from tests.support.clusters.autoscaled import wait_for_pod
from tests.support.clusters.control_plane import Watched
from tests.support.clusters.operators import running_operator_runner

pytestmark = pytest.mark.cluster

NAMESPACE = "karpenter"


@dataclass(frozen=True, kw_only=True)
class RunnerEnvironment:
    """A control plane and an operator runner."""

    client: KubeClient
    layout: RunnerLayout

    def apply(self, *objects: Json) -> None:
        for obj in objects:
            self.client.apply(obj, field_manager="test", force=True)

    def wait_for_pod(self, name: str, condition: Callable[[Json], bool], what: str) -> Json:
        return wait_for_pod(self.client, name, condition, what, namespace=NAMESPACE)

    def processes(self) -> list[psutil.Process]:
        """The controllers that run in the folder of the runner."""
        return [
            each
            for each in psutil.process_iter(["cmdline"])
            if str(self.layout.folder / "controller") in (each.info["cmdline"] or ())
        ]


@pytest.fixture(scope="module")
def runner(control_plane: Watched) -> Generator[RunnerEnvironment]:
    control_plane.control_plane.start()
    layout = RunnerLayout.of("local", control_plane.workspace)
    client = control_plane.client
    found = RunnerEnvironment(client=client, layout=layout)
    account: Json = {"name": "controller", "namespace": NAMESPACE}
    found.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "system-0"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
    )
    with running_operator_runner(layout, control_plane.workspace.project_root):
        yield found
    client.close()


def state(name: str, said: str) -> Json:
    """What the program of pod `name` reads: `wait`, `ready` or `end`."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"state": said},
    }


def pod(name: str) -> Json:
    """A pod that mounts the ConfigMap of its name."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/name": "karpenter"}},
        "spec": {
            "nodeName": "system-0",
            "serviceAccountName": "controller",
            "volumes": [{"name": "state", "configMap": {"name": name}}],
            "containers": [
                {
                    "name": "controller",
                    "image": "controller",
                    "ports": [
                        {"name": "metrics", "containerPort": 8080},
                        {"name": "http", "containerPort": 8081},
                    ],
                    "env": [
                        {"name": "STATE", "value": "/etc/state/state"},
                        {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    ],
                    "volumeMounts": [{"name": "state", "mountPath": "/etc/state"}],
                    "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}},
                }
            ],
        },
    }


def is_ready(pod: Json) -> bool:
    conditions = [mapping(each) for each in sequence(mapping(pod.get("status")).get("conditions"))]
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def waiting(pod: Json) -> Json:
    """Why no process runs behind the pod; empty while one does."""
    container = mapping(next(iter(sequence(mapping(pod.get("status")).get("containerStatuses"))), None))
    return mapping(mapping(container.get("state")).get("waiting"))


def is_running(pod: Json) -> bool:
    return mapping(pod.get("status")).get("phase") == "Running" and not waiting(pod)


def test_a_pod_is_ready_only_when_its_program_is(runner: RunnerEnvironment) -> None:
    runner.apply(state("early", "wait"), pod("early"))
    running = runner.wait_for_pod("early", is_running, "the program runs")
    assert not is_ready(running)
    runner.apply(state("early", "ready"))
    assert is_ready(runner.wait_for_pod("early", is_ready, "the pod is ready"))
    assert "started as early" in (runner.layout.logs / "karpenter-kwok.log").read_text()


def test_a_program_acts_as_its_pods_service_account(runner: RunnerEnvironment) -> None:
    runner.apply(state("account", "ready"), pod("account"))
    uid = mapping(runner.wait_for_pod("account", is_ready, "it is ready")["metadata"])["uid"]
    token = (runner.layout.pods / str(uid) / "token").read_text()
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert claims["sub"] == f"system:serviceaccount:{NAMESPACE}:controller"
    assert claims["exp"] - claims["iat"] >= 24 * 3600


def test_a_program_that_exits_is_restarted_and_counted(runner: RunnerEnvironment) -> None:
    runner.apply(state("ends", "ready"), pod("ends"))
    runner.wait_for_pod("ends", is_ready, "it is ready")
    runner.apply(state("ends", "end"))
    crashed = runner.wait_for_pod("ends", lambda pod: bool(waiting(pod)), "the pod says that it ended")
    assert waiting(crashed)["reason"] == "CrashLoopBackOff"
    assert "karpenter-kwok exited with code 7" in str(waiting(crashed)["message"])
    assert "karpenter-kwok.log" in str(waiting(crashed)["message"])
    runner.apply(state("ends", "ready"))
    again = runner.wait_for_pod("ends", is_ready, "it came back")
    assert restarts_of(again) >= 1


def test_a_pod_waits_for_its_volumes_with_an_event(runner: RunnerEnvironment) -> None:
    runner.apply(pod("hungry"))
    blocked = runner.wait_for_pod("hungry", lambda pod: bool(waiting(pod)), "the pod says what it waits for")
    assert waiting(blocked)["message"] == f"waiting for ConfigMap hungry in {NAMESPACE}"
    runner.apply(state("hungry", "ready"))
    assert is_ready(runner.wait_for_pod("hungry", is_ready, "it found it"))


def test_a_deleted_pod_loses_its_process_and_files(runner: RunnerEnvironment) -> None:
    runner.apply(state("short", "ready"), pod("short"))
    uid = str(mapping(runner.wait_for_pod("short", is_ready, "it is ready")["metadata"])["uid"])
    mine = [each for each in runner.processes() if uid in each.environ().get("KUBECONFIG", "")]
    assert len(mine) == 1
    runner.client.delete("v1", "Pod", "short", namespace=NAMESPACE)
    _, alive = psutil.wait_procs(mine, timeout=30)
    assert alive == []
