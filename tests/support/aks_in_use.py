"""An AKS cluster in use: its cloud, its API server, and whoever buys its machines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rehearsal.autoscaling import Autoscaler
from rehearsal.autoscaling.scale_sets import AZURE, ScaleSets
from rehearsal.engine.folder import EngineFolder
from rehearsal.kube.client import KubeClient
from rehearsal.kube.summary import mapping
from rehearsal.providers.cloud.state import CloudState
from rehearsal.scenes.aks import AksScaleSets
from rehearsal.stacks.cluster_nodes import ClusterNodes
from tests.support.gke_cluster import is_unschedulable, phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.paths import Workspace
    from rehearsal.providers.cloud.state import CloudObject
    from scheduling.json import Json

PLACE = "azure-test"


@dataclass(kw_only=True)
class Clock:
    """A clock that a test turns."""

    now: float = 0.0

    def __call__(self) -> float:
        """The time, in seconds."""
        return self.now


@dataclass(frozen=True, kw_only=True)
class AksInUse:
    """A cluster whose autoscaler looks when a test says so."""

    client: KubeClient
    cloud: CloudState
    nodes: ClusterNodes
    autoscaler: Autoscaler
    machines: AksScaleSets
    clock: Clock = field(default_factory=Clock)

    @classmethod
    def of(cls, workspace: Workspace) -> AksInUse:
        """The cluster of the control plane that runs in a workspace; nothing is in its cloud yet."""
        client, clock = KubeClient.from_kubeconfig(workspace.kubeconfig(PLACE)), Clock()
        cloud = CloudState(EngineFolder.of(PLACE, workspace).stand_ins / f"{AZURE}.json")
        nodes, scale_sets = ClusterNodes(workspace.kubeconfig(PLACE), AZURE), ScaleSets(cloud)
        return cls(
            client=client,
            cloud=cloud,
            nodes=nodes,
            autoscaler=Autoscaler(client, scale_sets, nodes, clock=clock),
            machines=AksScaleSets(client=client, scale_sets=scale_sets, nodes=nodes),
            clock=clock,
        )

    def put(self, *objects: CloudObject) -> None:
        """Have objects in the cloud, and their machines as nodes."""
        with self.cloud.changing() as console:
            for one in objects:
                console.put(one)
        self.nodes.keep(self.machines.scale_sets.machines)

    def apply(self, *objects: Json) -> None:
        for obj in objects:
            self.client.apply(obj, field_manager="test", force=True)

    def nodes_of(self, pool: str) -> list[Json]:
        """The nodes of one pool."""
        return self.client.list("v1", "Node", label_selector=f"holdfast.dev/pool={pool}")

    def wait_for_pod(self, name: str, condition: Callable[[Json], bool], what: str) -> Json:
        found = self.client.wait_for(
            "v1",
            "Pod",
            name,
            namespace="default",
            timeout_seconds=120,
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
        with self.cloud.changing() as console:
            for one in console.all():
                console.remove(one.type, one.id)
        self.nodes.keep(list)
        self.client.close()
