"""A cluster whose autoscaler looks when a test says so, and what becomes of pods in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from tests.support.pod_waits import wait_for_pod

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.scheduling.json import Json
    from holdfast.simulator.cluster_autoscaler import Autoscaler
    from holdfast.simulator.kubernetes_client.client import KubeClient


@dataclass(kw_only=True)
class Clock:
    """A clock that goes when it is told to."""

    now: float = 0.0

    def __call__(self) -> float:
        """The time, in seconds."""
        return self.now


@dataclass(frozen=True, kw_only=True)
class AutoscaledCluster:
    """What a test asks of a cluster, whosever it is; pods are in the namespace `default`."""

    client: KubeClient
    autoscaler: Autoscaler
    clock: Clock = field(default_factory=Clock)

    def apply(self, *objects: Json) -> None:
        """Create or change objects."""
        for obj in objects:
            self.client.apply(obj, field_manager="test", force=True)

    def wait_for_pod(self, name: str, condition: Callable[[Json], bool], what: str) -> Json:
        """Wait until something holds of a pod that is there."""
        return wait_for_pod(self.client, name, condition, what, seconds=120)

    def left_pending(self, name: str) -> None:
        """Wait until the scheduler has found no node for a pod."""
        self.wait_for_pod(name, _is_unschedulable, f"nothing has room for {name}")

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

    def delete_pods(self) -> None:
        """Take every pod away without notice."""
        for pod in self.client.list("v1", "Pod", namespace="default"):
            name = str(mapping(pod["metadata"])["name"])
            self.client.delete("v1", "Pod", name, namespace="default", grace_seconds=0)


def labels_of(node: Json) -> Json:
    """The labels of a node."""
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
    """The phase of a pod."""
    return mapping(pod.get("status")).get("phase")


def a_pod(name: str, *, cpu: str = "3", gpus: int = 0, spec: Json | None = None) -> Json:
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


def _is_unschedulable(pod: Json) -> bool:
    conditions = map(mapping, sequence(mapping(pod.get("status")).get("conditions")))
    return any(each.get("reason") == "Unschedulable" for each in conditions)
