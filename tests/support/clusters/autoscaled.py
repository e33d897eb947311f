"""Clusters of AKS and GKE whose cluster autoscaler runs one step for each call of a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.cluster_autoscaler import Autoscaler
from pulumi_holdfast.rehearsal.cluster_autoscaler.node_groups import AZURE, InstanceGroups, ScaleSets
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.scenarios.aks import AksScaleSets
from pulumi_holdfast.rehearsal.scenarios.gke import Gke
from pulumi_holdfast.rehearsal.stacks.cluster_nodes import ClusterNodes
from tests.support.clusters.cloud_stack import CloudStack


def wait_for_pod(
    client: KubeClient,
    name: str,
    condition: Callable[[Json], bool],
    what: str,
    *,
    namespace: str = "default",
    seconds: float = 180,
) -> Json:
    """Wait until something holds of a pod that is there; returns the pod."""
    found = client.wait_for(
        "v1",
        "Pod",
        name,
        namespace=namespace,
        timeout_seconds=seconds,
        condition=lambda pod: pod is not None and condition(pod),
        what=what,
    )
    assert found is not None, "the wait saw it"
    return found


@dataclass(kw_only=True)
class Clock:
    """A clock that tests advance."""

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
            name = name_of(pod)
            self.client.delete("v1", "Pod", name, namespace="default", grace_seconds=0)


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


GKE_STACK = "gke"


@dataclass(frozen=True, kw_only=True)
class GkeInUse(AutoscaledCluster):
    """A stack of a test's own; `autoscaler` looks once for each call of `step`."""

    stack: CloudStack
    machines: Gke

    @classmethod
    def of(cls, workspace: Workspace) -> GkeInUse:
        stack = CloudStack(name=f"gcp-{uuid4().hex[:8]}", place=GKE_STACK, workspace=workspace, package="gcp")
        with stack.cloud().changing() as console:
            for one in console.all():
                console.remove(one.type, one.id)
        client, clock = stack.client(), Clock()
        nodes, groups = ClusterNodes(workspace.kubeconfig(GKE_STACK), "gcp"), InstanceGroups(stack.cloud())
        return cls(
            stack=stack,
            client=client,
            autoscaler=Autoscaler(client, groups, nodes, clock=clock),
            machines=Gke(client=client, groups=groups, nodes=nodes),
            clock=clock,
        )

    def step(self) -> None:
        """Have the autoscaler look once."""
        self.autoscaler.step()

    def delete(self, pod: str) -> None:
        """Take a pod away, and wait until it is gone: who looks before sees its node in use."""
        self.client.delete("v1", "Pod", pod, namespace="default", grace_seconds=0)
        self.client.wait_for(
            "v1",
            "Pod",
            pod,
            namespace="default",
            timeout_seconds=180,
            condition=lambda found: found is None,
            what=f"{pod} is gone",
        )

    def nodes(self, pool: str | None = None) -> list[Json]:
        """The nodes, or those of one pool."""
        selector = None if pool is None else f"cloud.google.com/gke-nodepool={pool}"
        return self.client.list("v1", "Node", label_selector=selector)

    def clear(self) -> None:
        """Leave the control plane as it was, whatever a test left in it."""
        self.delete_pods()
        for data in self.client.list("v1", "ConfigMap", namespace="default"):
            name = name_of(data)
            if name.startswith("conf-"):
                self.client.delete("v1", "ConfigMap", name, namespace="default")
        with self.stack.cloud().changing() as console:
            for one in console.all():
                console.remove(one.type, one.id)
        self.machines.nodes.keep(list)
        self.client.close()


AKS_STACK = "azure-test"


@dataclass(frozen=True, kw_only=True)
class AksInUse(AutoscaledCluster):
    """A cluster whose autoscaler runs when a test calls it."""

    cloud: CloudState
    nodes: ClusterNodes
    machines: AksScaleSets

    @classmethod
    def of(cls, workspace: Workspace) -> AksInUse:
        """The cluster of the control plane that runs in a workspace; nothing is in its cloud yet."""
        client, clock = KubeClient.from_kubeconfig(workspace.kubeconfig(AKS_STACK)), Clock()
        cloud = CloudState(EngineFolder.of(AKS_STACK, workspace).cloud_states / f"{AZURE}.json")
        nodes, scale_sets = ClusterNodes(workspace.kubeconfig(AKS_STACK), AZURE), ScaleSets(cloud)
        return cls(
            client=client,
            cloud=cloud,
            nodes=nodes,
            autoscaler=Autoscaler(client, scale_sets, nodes, clock=clock),
            machines=AksScaleSets(client=client, groups=scale_sets, nodes=nodes),
            clock=clock,
        )

    def put(self, *objects: CloudObject) -> None:
        """Have objects in the cloud, and their machines as nodes."""
        with self.cloud.changing() as console:
            for one in objects:
                console.put(one)
        self.nodes.keep(self.machines.groups.machines)

    def nodes_of(self, pool: str) -> list[Json]:
        """The nodes of one pool."""
        return self.client.list("v1", "Node", label_selector=f"holdfast.dev/pool={pool}")

    def clear(self) -> None:
        """Leave the control plane as it was, whatever a test left in it."""
        self.delete_pods()
        with self.cloud.changing() as console:
            for one in console.all():
                console.remove(one.type, one.id)
        self.nodes.keep(list)
        self.client.close()
