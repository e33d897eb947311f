"""An AKS cluster in use: its cloud, its API server, and whoever buys its machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.rehearsal.scenarios.aks import AksScaleSets
from holdfast.simulator.clouds.state import CloudState
from holdfast.simulator.cluster_autoscaler import Autoscaler
from holdfast.simulator.cluster_autoscaler.scale_sets import AZURE, ScaleSets
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.pulumi.folder import EngineFolder
from holdfast.simulator.stacks.cluster_nodes import ClusterNodes
from tests.support.autoscaled_cluster import AutoscaledCluster, Clock

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
    from holdfast.simulator.clouds.state import CloudObject
    from holdfast.simulator.paths import Workspace

PLACE = "azure-test"


@dataclass(frozen=True, kw_only=True)
class AksInUse(AutoscaledCluster):
    """A cluster whose autoscaler looks when a test says so."""

    cloud: CloudState
    nodes: ClusterNodes
    machines: AksScaleSets

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
