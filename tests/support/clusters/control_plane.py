"""A control plane in a temporary folder, built from the tools of the checkout, and the kinds that it serves."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import psutil
import yaml

from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.kubernetes.fallback_policy import DEFINITION, definition_spec
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.control_plane import ControlPlane
from pulumi_holdfast.rehearsal.control_plane.configuration import COMPONENTS
from pulumi_holdfast.rehearsal.control_plane.processes import processes_in
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.json_objects import obj, objects

KIND = "CustomResourceDefinition"
API_VERSION = "apiextensions.k8s.io/v1"


def define(client: KubeClient, definition: Json) -> None:
    """Define a kind, and wait until the API server serves it."""
    client.apply(definition, field_manager="tests")
    wait_until_served(client, name_of(definition))


def define_all(client: KubeClient, folder: Path) -> None:
    """Define the kinds whose definitions are in a folder, a file for each."""
    for path in sorted(folder.glob("*.yaml")):
        define(client, read_definition(path))


def define_fallback_policies(client: KubeClient) -> None:
    """Define the kind FallbackPolicy."""
    define(
        client,
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": DEFINITION},
            "spec": definition_spec(),
        },
    )


def read_definition(path: Path) -> Json:
    """What is in a file."""
    # Karpenter's definitions are long: the C loader takes a tenth of the time.
    return cast("Json", yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader))


def wait_until_served(client: KubeClient, name: str) -> None:
    """Wait until the API server serves the kind that a definition of this name defines."""
    client.wait_for(
        API_VERSION, KIND, name, timeout_seconds=180, condition=_is_established, what=f"{name} is served"
    )


def _is_established(definition: Json | None) -> bool:
    conditions = objects(obj((definition or {}).get("status")).get("conditions"))
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


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


def phase(pod: Json | None) -> object:
    return mapping((pod or {}).get("status")).get("phase")


def apply(client: KubeClient, obj: Json) -> None:
    client.apply(obj, field_manager="test", force=True)


def run(client: KubeClient, pod: Json) -> Json:
    """Create a pod and wait until it runs."""
    # The API server refuses pods until the controller manager has created the account that they run as.
    client.wait_for(
        "v1",
        "ServiceAccount",
        "default",
        namespace="default",
        timeout_seconds=180,
        condition=lambda found: found is not None,
        what="the default service account",
    )
    apply(client, pod)
    name = name_of(pod)
    found = client.wait_for(
        "v1",
        "Pod",
        name,
        timeout_seconds=180,
        condition=lambda pod: phase(pod) == "Running",
        what=f"{name} runs",
    )
    assert found is not None, "the wait saw it"
    return found


CHECKOUT = Path(__file__).resolve().parents[3]


def scratch_workspace(folder: Path) -> Workspace:
    """A workspace in `folder` which writes there, and takes the tools and charts of the checkout."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Pulumi.yaml").touch()
    for shared in (".tools", "tools"):
        if not (folder / shared).is_symlink():
            (folder / shared).symlink_to(CHECKOUT / shared)
    return Workspace(project_root=folder)


@contextmanager
def running_control_plane(
    folder: Path, stack: str = "local", *, arguments: tuple[tuple[str, str], ...] = ()
) -> Generator[Workspace]:
    """A control plane for the length of the block; its kubeconfig is `workspace.kubeconfig(stack)`."""
    workspace = scratch_workspace(folder)
    control_plane = ControlPlane(stack, workspace, report=lambda _: None, arguments=arguments)
    try:
        control_plane.start()
        yield workspace
    finally:
        control_plane.delete()


def processes_of(workspace: Workspace) -> list[str]:
    """The command lines of every process whose program, argument or folder is of this workspace."""
    root = str(workspace.project_root.resolve())
    found: list[str] = []
    for process in psutil.process_iter(["cmdline"]):
        try:
            words = [*(process.info["cmdline"] or ()), process.cwd()]
            if process.pid != os.getpid() and any(root in word for word in words):
                found.append(" ".join(words))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found
