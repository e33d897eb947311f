"""A control plane comes up, comes back, and goes without a trace."""

import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from rehearsal.controlplane import ControlPlane
from rehearsal.controlplane.configuration import COMPONENTS
from rehearsal.controlplane.processes import processes_in
from rehearsal.errors import RehearsalError
from rehearsal.json import Json
from rehearsal.kube.client import KubeClient
from rehearsal.kube.summary import mapping, sequence
from tests.support.control_plane import scratch_workspace

pytestmark = pytest.mark.cluster

MARK: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mark", "namespace": "default"}}
NODE: Json = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-1"},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "8"}},
}


class Watched:
    """A control plane, and what it reported."""

    def __init__(self, folder: Path) -> None:
        self.reports: list[str] = []
        self.workspace = scratch_workspace(folder)
        self.control_plane = ControlPlane("local", self.workspace, report=self.reports.append)

    @property
    def client(self) -> KubeClient:
        """A client of the API server as it is now: its port changes with every start."""
        return KubeClient.from_kubeconfig(self.workspace.kubeconfig("local"))

    def running(self) -> dict[str, int]:
        """The processes there are, by name."""
        found = processes_in(self.control_plane.layout.cluster_dir, COMPONENTS)
        return {each.name: each.process.pid for each in found}

    def kill(self, component: str) -> None:
        """Kill a process and wait until it is gone."""
        for each in processes_in(self.control_plane.layout.cluster_dir, [component]):
            each.process.kill()
            each.process.wait(timeout=10)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Generator[Watched]:
    found = Watched(tmp_path_factory.mktemp("control-plane"))
    found.control_plane.start()
    yield found
    found.control_plane.delete()


def trainer(name: str, **metadata: "Json") -> Json:
    """A pod with an init container and a sidecar that wants the node's GPUs."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {
            "nodeName": "node-1",
            "initContainers": [
                {"name": "fetch", "image": "fetch"},
                {"name": "watch", "image": "watch", "restartPolicy": "Always"},
            ],
            "containers": [{"name": "train", "image": "train"}],
        },
    }


def phase(pod: "Json | None") -> object:
    return mapping((pod or {}).get("status")).get("phase")


def apply(client: KubeClient, obj: Json) -> None:
    client.apply(obj, field_manager="test", force=True)


def run(client: KubeClient, pod: Json) -> Json:
    """Create a pod and wait until it runs."""
    apply(client, pod)
    name = str(mapping(pod["metadata"])["name"])
    found = client.wait_for(
        "v1",
        "Pod",
        name,
        timeout_seconds=60,
        condition=lambda pod: phase(pod) == "Running",
        what=f"{name} runs",
    )
    assert found is not None, "the wait saw it"
    return found


def test_an_api_server_of_the_wanted_version_serves_mutating_policies(watched: Watched) -> None:
    assert watched.client.server_version().startswith("v1.36."), "the version that is pinned"
    assert watched.client.serves("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"), (
        "admission in training namespaces is built on it"
    )


def test_a_control_plane_that_is_up_is_left_as_it_is(watched: Watched) -> None:
    before = watched.running()
    watched.control_plane.start()
    assert watched.running() == before, "the same processes run"
    assert set(before) == set(COMPONENTS), "all of them"


def test_the_kubeconfig_is_for_its_owner_alone(watched: Watched) -> None:
    kubeconfig = watched.workspace.kubeconfig("local")
    assert kubeconfig.stat().st_mode & 0o077 == 0, "it holds the administrator's key"


def test_a_node_keeps_its_gpus_and_a_pod_on_it_runs(watched: Watched) -> None:
    apply(watched.client, NODE)
    node = watched.client.wait_for(
        "v1",
        "Node",
        "node-1",
        timeout_seconds=60,
        condition=lambda node: bool(mapping((node or {}).get("status")).get("conditions")),
        what="the node reports",
    )
    assert mapping(mapping((node or {})["status"])["allocatable"])["nvidia.com/gpu"] == "8", (
        "as its machine has"
    )
    statuses = mapping(run(watched.client, trainer("runs"))["status"])
    sidecar = mapping(sequence(statuses["initContainerStatuses"])[1])
    assert "running" in mapping(sidecar["state"]), "a sidecar stays up beside the training"


def test_a_deleted_pod_is_seen_to_fail_of_sigterm_before_it_goes(watched: Watched) -> None:
    run(watched.client, trainer("evicted"))
    seen: list[tuple[str, Json]] = []
    for what, pod in watched.client.watch(
        "v1", "Pod", namespace="default", name="evicted", timeout_seconds=60
    ):
        if not seen:
            watched.client.evict("default", "evicted")
        seen.append((what, pod))
        if what == "DELETED":
            break
    failed = [pod for what, pod in seen if what == "MODIFIED" and phase(pod) == "Failed"]
    assert failed, "a pod failure policy looks at Failed pods, never at vanished ones"
    status = mapping(failed[0]["status"])
    terminated = mapping(mapping(mapping(sequence(status["containerStatuses"])[0])["state"])["terminated"])
    assert terminated["exitCode"] == 143, "what SIGTERM leaves behind"
    conditions = {str(mapping(each)["type"]) for each in sequence(status["conditions"])}
    assert "DisruptionTarget" in conditions, "and that it was an eviction stays on record"
    assert seen[-1][0] == "DELETED", "then it is gone"


def test_a_pod_succeeds_only_when_it_is_told_to(watched: Watched) -> None:
    run(watched.client, trainer("trains"))
    watched.client.merge_patch(
        "v1", "Pod", "trains", {"metadata": {"annotations": {"holdfast.dev/complete": "true"}}}
    )
    done = watched.client.wait_for(
        "v1",
        "Pod",
        "trains",
        timeout_seconds=60,
        condition=lambda pod: phase(pod) == "Succeeded",
        what="the training ends",
    )
    assert phase(done) == "Succeeded", "its author said so"


def test_a_hosted_pod_waits_for_its_host(watched: Watched) -> None:
    apply(watched.client, trainer("hosted", annotations={"holdfast.dev/hosted": "true"}))
    run(watched.client, trainer("not-hosted"))
    hosted = watched.client.get("v1", "Pod", "hosted")
    assert phase(hosted) == "Pending", (
        "a pod that came after it runs already; this one is for its host to run"
    )
    watched.client.delete("v1", "Pod", "hosted")


def test_data_and_tokens_outlive_a_stop(watched: Watched) -> None:
    apply(watched.client, MARK)
    watched.control_plane.stop()
    assert watched.running() == {}, "no process is left"
    assert not watched.control_plane.healthy(), "and nothing answers"
    watched.control_plane.stop()
    watched.control_plane.start()
    assert watched.client.get("v1", "ConfigMap", "mark") is not None, "what was stored is there"
    assert run(watched.client, trainer("after-a-stop")), "and pods run again at once"


@pytest.mark.parametrize("component", ["kube-scheduler", "etcd"])
def test_a_control_plane_of_which_a_part_died_is_started_again_on_its_data(
    watched: Watched, component: str
) -> None:
    apply(watched.client, MARK)
    watched.kill(component)
    watched.reports.clear()
    watched.control_plane.start()
    assert any(component in line for line in watched.reports), f"{watched.reports} should name {component}"
    assert watched.control_plane.healthy(), "all of it runs again"
    assert watched.client.get("v1", "ConfigMap", "mark") is not None, "nothing stored was lost"


def test_what_a_killed_run_left_behind_is_no_obstacle(watched: Watched) -> None:
    for component in COMPONENTS:
        watched.kill(component)
    port = watched.client.server.rpartition(":")[2]
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", int(port)))
        squatter.listen()
        watched.control_plane.start()
        assert watched.client.server.rpartition(":")[2] != port, (
            "somebody else has its port now: it took another"
        )
    assert watched.control_plane.healthy(), "stale pid files and a taken port did not stop it"


def test_damaged_data_is_told_with_what_to_do(watched: Watched) -> None:
    watched.control_plane.stop()
    wal = next((watched.control_plane.layout.etcd_dir / "member" / "wal").glob("*.wal"))
    whole = wal.read_bytes()
    wal.write_bytes(b"\xff" * 4096)
    with pytest.raises(RehearsalError, match=r"etcd ended .*\n(?s:.*)remove .*control-plane and start again"):
        watched.control_plane.start()
    assert watched.running() == {}, "a start that failed leaves no process"
    wal.write_bytes(whole)
    watched.control_plane.start()
    assert watched.control_plane.healthy(), "and the next one can use what is there"


def test_a_deleted_control_plane_leaves_nothing_and_may_be_deleted_again(watched: Watched) -> None:
    layout = watched.control_plane.layout
    watched.control_plane.delete()
    watched.control_plane.delete()
    assert watched.running() == {}, "no process"
    assert not layout.home.exists(), "no data"
    assert not layout.kubeconfig.exists(), "no key"
