"""Operators installed from their charts into a control plane, where the operator runner starts them."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

import psutil
import yaml

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.aws.offerings import EC2_RESERVATION
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner import OperatorRunner
from pulumi_holdfast.rehearsal.operator_runner.operator_runner import RunnerLayout, read_record
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.locate import find_tool
from tests.support.clusters.autoscaled import wait_for_pod
from tests.support.clusters.control_plane import CHECKOUT, running_control_plane

# Ready when the mounted file says so; ends, with code 7, when it says that.
PROGRAM = """#!{python}
import http.server, os, pathlib, sys
state = pathlib.Path(os.environ["STATE"])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        said = state.read_text()
        if said == "end":
            os._exit(7)
        self.send_response(200 if said == "ready" and self.path == "/readyz" else 503)
        self.end_headers()
print("started as", os.environ["WHO"], flush=True)
http.server.HTTPServer(("127.0.0.1", int(os.environ["HEALTH_PROBE_PORT"])), Handler).serve_forever()
"""

RUNNER = """
import asyncio, logging, pathlib, sys
from pulumi_holdfast.rehearsal.operator_runner.kubelet import Kubelet
from pulumi_holdfast.rehearsal.operator_runner.operator_runner import RunnerLayout
from pulumi_holdfast.rehearsal.paths import Workspace
logging.basicConfig(level=logging.INFO, stream=sys.stderr)
root, program = map(pathlib.Path, sys.argv[1:])
asyncio.run(Kubelet(RunnerLayout.of("local", Workspace(project_root=root)), lambda tool: program, lambda node: "[]").run())
"""


@contextmanager
def running_operator_runner(layout: RunnerLayout, root: Path) -> Generator[RunnerLayout]:
    """An operator runner, as a process of its own, that runs the program for every controller."""
    layout.folder.mkdir(parents=True, exist_ok=True)
    program = layout.folder / "controller"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    with subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(root), str(program)],
        cwd=layout.folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    ) as runner:
        try:
            while runner.poll() is None and read_record(layout.record) is None:
                psutil.wait_procs([psutil.Process(runner.pid)], timeout=0.05)
            yield layout
        finally:
            runner.terminate()
            runner.wait(timeout=60)


STACK = "aws-test"
OWN_CHARTS = CHECKOUT / "components/pulumi_holdfast/kubernetes/charts"

SYSTEM_TOLERATIONS = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]


@dataclass(frozen=True, kw_only=True)
class OperatorCluster:
    """A control plane with two system nodes in two zones, and its operator runner."""

    client: KubeClient
    workspace: Workspace

    def install(self, release: str, chart: Path, namespace: str, values: Json | None = None) -> None:
        """Install a chart, or change its release, and wait until its pods are ready."""
        with NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump(values or {}, file)
            file.flush()
            what = (
                "upgrade",
                "--install",
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
        """The leader of a Lease, empty without one."""
        found = self.client.get("coordination.k8s.io/v1", "Lease", lease, namespace)
        return str(mapping((found or {}).get("spec")).get("holderIdentity") or "")


@contextmanager
def bare_operator_cluster(folder: Path) -> Generator[OperatorCluster]:
    """A control plane without nodes and its operator runner, for the length of the block."""
    with running_control_plane(folder, STACK) as workspace:
        runner = OperatorRunner(workspace, STACK, report=lambda _: None)
        client = KubeClient.from_kubeconfig(workspace.kubeconfig(STACK))
        try:
            runner.start()
            yield OperatorCluster(client=client, workspace=workspace)
        finally:
            runner.stop()
            client.close()


@contextmanager
def operator_cluster(folder: Path) -> Generator[OperatorCluster]:
    """A control plane with two system nodes and its operator runner, for the length of the block."""
    with bare_operator_cluster(folder) as charts:
        charts.apply(system_node("system-0", "us-east-1a"), system_node("system-1", "us-east-1b"))
        yield charts


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


def condition_of(obj: Json | None, name: str) -> Json:
    """A condition of an object's status; empty where there is none."""
    conditions = [mapping(each) for each in sequence(mapping((obj or {}).get("status")).get("conditions"))]
    found = [each for each in conditions if each.get("type") == name]
    return found[0] if found else mapping(None)


def is_ready(obj: Json | None) -> bool:
    return condition_of(obj, "Ready").get("status") == "True"


NAMESPACE = "karpenter"
NODE_CLASS = "karpenter.k8s.aws/v1"
STOCK = "rehearsal.holdfast.dev/stock"

#: The chart's own defaults but for what has none: two replicas that elect a leader, on two nodes in two zones.
VALUES: Json = {
    "settings": {"clusterName": "holdfast-test"},
    "controller": {
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}}
    },
}


@dataclass(frozen=True, kw_only=True)
class KarpenterCluster:
    """A control plane with Karpenter in it."""

    client: KubeClient
    charts: OperatorCluster

    def apply(self, *objects: Json) -> None:
        self.charts.apply(*objects)

    def machines(self, pool: str) -> list[Json]:
        """The NodeClaims of a pool."""
        return self.client.list(
            "karpenter.sh/v1", "NodeClaim", label_selector=f"karpenter.sh/nodepool={pool}"
        )

    def wait_for_machines(self, pool: str, condition: Callable[[list[Json]], bool], what: str) -> list[Json]:
        return self.client.wait_list(
            "karpenter.sh/v1",
            "NodeClaim",
            label_selector=f"karpenter.sh/nodepool={pool}",
            timeout_seconds=180,
            condition=condition,
            what=what,
        )

    def wait_for_class(self, name: str, condition: Callable[[Json | None], bool], what: str) -> Json | None:
        return self.client.wait_for(
            NODE_CLASS, "EC2NodeClass", name, timeout_seconds=180, condition=condition, what=what
        )

    def wait_for_pod(self, name: str, condition: Callable[[Json], bool], what: str) -> Json:
        return wait_for_pod(self.client, name, condition, what)

    def wait_for_event(self, reason: str, about: str) -> Json:
        """An event with this reason about an object whose name starts so."""

        def seen(events: list[Json]) -> list[Json]:
            return [
                event
                for event in events
                if event.get("reason") == reason
                and str(mapping(event.get("involvedObject")).get("name")).startswith(about)
            ]

        return seen(
            self.client.wait_list(
                "v1", "Event", timeout_seconds=180, condition=lambda events: bool(seen(events)), what=reason
            )
        )[0]


@contextmanager
def karpenter_cluster(
    folder: Path, reservations: Mapping[str, Json] | None = None
) -> Generator[KarpenterCluster]:
    """Karpenter for AWS, ready, for the length of the block; `reservations` are EC2's, by id."""
    with operator_cluster(folder) as charts:
        clouds = EngineFolder.of(STACK, charts.workspace).cloud_states
        clouds.mkdir(parents=True, exist_ok=True)
        with CloudState(clouds / "aws.json").changing() as account:
            for name, inputs in (reservations or {}).items():
                account.put(CloudObject(type=EC2_RESERVATION, id=name, urn="", inputs=inputs))
        charts.install("karpenter-crds", OWN_CHARTS / "karpenter-crds", NAMESPACE)
        charts.install("karpenter", charts.workspace.charts_dir / "karpenter", NAMESPACE, VALUES)
        yield KarpenterCluster(client=charts.client, charts=charts)


def node_class(name: str, *, image: str = "al2023@v20260801") -> Json:
    """An EC2NodeClass that AWS's CRD accepts."""
    return {
        "apiVersion": NODE_CLASS,
        "kind": "EC2NodeClass",
        "metadata": {"name": name},
        "spec": {
            "role": "holdfast-test-node",
            "amiSelectorTerms": [{"alias": image}],
            "subnetSelectorTerms": [{"id": "subnet-0123456789abcdef0"}],
            "securityGroupSelectorTerms": [{"id": "sg-0123456789abcdef0"}],
        },
    }


def node_pool(
    name: str, *types: str, capacity: str = "spot", weight: int = 1, taints: Sequence[Json] = ()
) -> Json:
    """A NodePool over the node class of its name; Karpenter takes no machine from it by itself."""
    requirements: list[JsonValue] = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "weight": weight,
            "disruption": {
                "consolidateAfter": "Never",
                "consolidationPolicy": "WhenEmpty",
                "budgets": [{"nodes": "0"}],
            },
            "template": {
                "metadata": {"labels": {"team": name}},
                "spec": {
                    "nodeClassRef": reference,
                    "expireAfter": "Never",
                    "requirements": requirements,
                    "taints": list(taints),
                },
            },
        },
    }


def job_pod(name: str, selector: Json) -> Json:
    """A pod that needs a node of its own kind."""
    container: Json = {"name": "train", "image": "train", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeSelector": selector, "terminationGracePeriodSeconds": 1, "containers": [container]},
    }
