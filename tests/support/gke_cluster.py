"""A GKE cluster in use: its cloud, its API server, its autoscaler."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from rehearsal.autoscaling import Autoscaler
from rehearsal.autoscaling.groups import InstanceGroups
from rehearsal.kube.client import KubeClient
from rehearsal.kube.summary import mapping, sequence
from rehearsal.paths import Workspace
from rehearsal.scenes.gke import Gke
from rehearsal.stacks.cluster_nodes import ClusterNodes
from scheduling.json import Json
from tests.support.cloud_stack import CloudStack

PLACE = "gke"


@dataclass(kw_only=True)
class Clock:
    """A clock that goes when it is told to."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, kw_only=True)
class GkeInUse:
    """A stack of a test's own; `autoscaler` looks once for each call of `step`."""

    stack: CloudStack
    client: KubeClient
    autoscaler: Autoscaler
    machines: Gke
    clock: Clock = field(default_factory=Clock)

    @classmethod
    def of(cls, workspace: Workspace) -> "GkeInUse":
        stack = CloudStack(name=f"gcp-{uuid4().hex[:8]}", place=PLACE, workspace=workspace, package="gcp")
        with stack.cloud().changing() as console:
            for one in console.all():
                console.remove(one.type, one.id)
        client, clock = stack.client(), Clock()
        nodes = ClusterNodes(workspace.kubeconfig(PLACE), "gcp")
        return cls(
            stack=stack,
            client=client,
            autoscaler=Autoscaler(client, InstanceGroups(stack.cloud()), nodes, clock=clock),
            machines=Gke(client=client, cloud=stack.cloud(), nodes=nodes),
            clock=clock,
        )

    def step(self) -> None:
        """Have the autoscaler look once."""
        self.autoscaler.step()

    def apply(self, *objects: Json) -> None:
        for obj in objects:
            self.client.apply(obj, field_manager="test", force=True)

    def delete(self, pod: str) -> None:
        """Take a pod away, and wait until it is gone: who looks before sees its node in use."""
        self.client.delete("v1", "Pod", pod, namespace="default", grace_seconds=0)
        self.client.wait_for(
            "v1",
            "Pod",
            pod,
            namespace="default",
            timeout_seconds=60,
            condition=lambda found: found is None,
            what=f"{pod} is gone",
        )

    def nodes(self, pool: str | None = None) -> list[Json]:
        """The nodes, or those of one pool."""
        selector = None if pool is None else f"cloud.google.com/gke-nodepool={pool}"
        return self.client.list("v1", "Node", label_selector=selector)

    def wait_for_pod(self, name: str, condition: Callable[[Json], bool], what: str) -> Json:
        found = self.client.wait_for(
            "v1",
            "Pod",
            name,
            namespace="default",
            timeout_seconds=60,
            condition=lambda pod: pod is not None and condition(pod),
            what=what,
        )
        assert found is not None, "the wait saw it"
        return found

    def left_pending(self, name: str) -> None:
        """Wait until the scheduler has found no node for a pod."""
        self.wait_for_pod(name, is_unschedulable, f"nothing has room for {name}")

    def running_on(self, name: str) -> Json:
        """The node on which a pod runs, once it does."""
        pod = self.wait_for_pod(name, lambda pod: phase(pod) == "Running", f"{name} runs")
        node = self.client.get("v1", "Node", str(mapping(pod["spec"])["nodeName"]))
        assert node is not None, "a pod runs on a node that is there"
        return node

    def events_about(self, pod: str) -> list[tuple[str, str]]:
        """Reasons and messages of the autoscaler's events about a pod, in any order."""
        return [
            (str(event["reason"]), str(event["message"]))
            for event in self.client.list("v1", "Event", namespace="default")
            if mapping(event.get("involvedObject")).get("name") == pod
            and mapping(event.get("source")).get("component") == "cluster-autoscaler"
        ]

    def clear(self) -> None:
        """Leave the control plane as it was, whatever a test left in it."""
        for pod in self.client.list("v1", "Pod", namespace="default"):
            name = str(mapping(pod["metadata"])["name"])
            self.client.delete("v1", "Pod", name, namespace="default", grace_seconds=0)
        for data in self.client.list("v1", "ConfigMap", namespace="default"):
            name = str(mapping(data["metadata"])["name"])
            if name.startswith("conf-"):
                self.client.delete("v1", "ConfigMap", name, namespace="default")
        with self.stack.cloud().changing() as console:
            for one in console.all():
                console.remove(one.type, one.id)
        self.machines.nodes.keep(list)
        self.client.close()


def labels_of(node: Json) -> Json:
    return mapping(mapping(node["metadata"]).get("labels"))


def taints_of(node: Json) -> list[str]:
    """The taints of a node's pool, as `key=value:effect`: Kubernetes' own come and go."""
    taints = map(mapping, sequence(mapping(node.get("spec")).get("taints")))
    return [
        f"{taint.get('key')}={taint.get('value', '')}:{taint.get('effect')}"
        for taint in taints
        if not str(taint.get("key")).startswith("node.kubernetes.io/")
    ]


def phase(pod: Json) -> object:
    return mapping(pod.get("status")).get("phase")


def is_unschedulable(pod: Json) -> bool:
    conditions = map(mapping, sequence(mapping(pod.get("status")).get("conditions")))
    return any(each.get("reason") == "Unschedulable" for each in conditions)


def a_pod(name: str, *, cpu: str = "3", gpus: int = 0, spec: "Json | None" = None) -> Json:
    """A pod that needs most of a machine of four cores."""
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    resources: Json = {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": limits}
    container: Json = {"name": "train", "image": "train", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"restartPolicy": "Never", "containers": [container], **(spec or {})},
    }
