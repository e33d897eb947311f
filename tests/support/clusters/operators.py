"""Real charts, installed into a control plane of a cloud's kind: its host runs what they deploy."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

import yaml

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.operator_runner import OperatorRunner
from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.locate import find_tool
from tests.support.control_plane import CHECKOUT, running_control_plane

STACK = "aws-test"
OWN_CHARTS = CHECKOUT / "components" / "charts"

SYSTEM_TOLERATIONS = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]


@dataclass(frozen=True, kw_only=True)
class HostedCharts:
    """A control plane with two system nodes in two zones, and its host."""

    client: KubeClient
    workspace: Workspace

    def install(self, release: str, chart: Path, namespace: str, values: "Json | None" = None) -> None:
        """Install a chart and wait until its pods are ready."""
        with NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump(values or {}, file)
            file.flush()
            what = (
                "install",
                release,
                chart,
                "--values",
                file.name,
                "--skip-crds",
                "--wait",
                "--timeout",
                "2m",
            )
            kubeconfig = self.workspace.kubeconfig(STACK)
            where = ("--kubeconfig", kubeconfig, "--namespace", namespace, "--create-namespace")
            helm = (find_tool("helm", self.workspace), *what, *where)
            answer = subprocess.run(helm, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, f"helm could not install {release}: {answer.stderr}"

    def apply(self, *objects: Json) -> None:
        for obj in objects:
            self.client.apply(obj, field_manager="test", force=True)

    def pods(self, namespace: str) -> list[Json]:
        """The pods of a namespace."""
        return self.client.list("v1", "Pod", namespace=namespace)

    def leader(self, namespace: str, lease: str) -> str:
        """Who leads; empty where nobody does."""
        found = self.client.get("coordination.k8s.io/v1", "Lease", lease, namespace)
        return str(mapping((found or {}).get("spec")).get("holderIdentity") or "")


@contextmanager
def hosted_charts(folder: Path) -> Generator[HostedCharts]:
    """A control plane and its host, for the length of the block."""
    with running_control_plane(folder, STACK) as workspace:
        host = OperatorRunner(workspace, STACK, report=lambda _: None)
        client = KubeClient.from_kubeconfig(workspace.kubeconfig(STACK))
        charts = HostedCharts(client=client, workspace=workspace)
        try:
            host.start()
            charts.apply(system_node("system-0", "us-east-1a"), system_node("system-1", "us-east-1b"))
            yield charts
        finally:
            host.stop()
            client.close()


def system_node(name: str, zone: str) -> Json:
    """A node of the cluster's own node group."""
    capacity: Json = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/region": zone[:-1],
                "topology.kubernetes.io/zone": zone,
            },
        },
        "spec": {"taints": [{"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}]},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def condition_of(obj: "Json | None", name: str) -> Json:
    """A condition of an object's status; empty where there is none."""
    conditions = [mapping(each) for each in sequence(mapping((obj or {}).get("status")).get("conditions"))]
    found = [each for each in conditions if each.get("type") == name]
    return found[0] if found else mapping(None)


def is_ready(obj: "Json | None") -> bool:
    return condition_of(obj, "Ready").get("status") == "True"
