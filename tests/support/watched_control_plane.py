"""A control plane that tests kill, stop and bring back, and pods for it."""

from pathlib import Path

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.control_plane import ControlPlane
from holdfast.simulator.control_plane.configuration import COMPONENTS
from holdfast.simulator.control_plane.processes import processes_in
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping
from tests.support.control_plane import scratch_workspace

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


def trainer(name: str, **metadata: JsonValue) -> Json:
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
