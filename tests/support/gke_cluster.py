"""A GKE cluster in use: its cloud, its API server, its autoscaler."""

from dataclasses import dataclass
from uuid import uuid4

from holdfast.rehearsal.scenarios.gke import Gke
from holdfast.scheduling.json import Json
from holdfast.simulator.cluster_autoscaler import Autoscaler
from holdfast.simulator.cluster_autoscaler.groups import InstanceGroups
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.paths import Workspace
from holdfast.simulator.stacks.cluster_nodes import ClusterNodes
from tests.support.autoscaled_cluster import AutoscaledCluster, Clock
from tests.support.clusters.cloud_stack import CloudStack

PLACE = "gke"


@dataclass(frozen=True, kw_only=True)
class GkeInUse(AutoscaledCluster):
    """A stack of a test's own; `autoscaler` looks once for each call of `step`."""

    stack: CloudStack
    machines: Gke

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

    def clear(self) -> None:
        """Leave the control plane as it was, whatever a test left in it."""
        self.delete_pods()
        for data in self.client.list("v1", "ConfigMap", namespace="default"):
            name = str(mapping(data["metadata"])["name"])
            if name.startswith("conf-"):
                self.client.delete("v1", "ConfigMap", name, namespace="default")
        with self.stack.cloud().changing() as console:
            for one in console.all():
                console.remove(one.type, one.id)
        self.machines.nodes.keep(list)
        self.client.close()
