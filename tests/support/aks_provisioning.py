"""A cluster with the Karpenter of AKS, which the operator runner starts when the cloud has such a cluster."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.cluster_autoscaler.node_groups import AZURE
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from tests.support.clusters.control_plane import wait_until_served
from tests.support.clusters.operators import STACK, OperatorCluster, is_ready, operator_cluster

NODE_CLASS = "karpenter.azure.com/v1beta1"
NODE_POOL = "karpenter.sh/v1"


@dataclass(frozen=True, kw_only=True)
class AksProvisioning:
    """A control plane whose runner watches a simulated cloud."""

    charts: OperatorCluster
    cloud: CloudState

    def put(self, cluster: CloudObject) -> None:
        """Have a cluster in the cloud."""
        with self.cloud.changing() as console:
            console.put(cluster)

    def remove(self, cluster: CloudObject) -> None:
        """Have it no more."""
        with self.cloud.changing() as console:
            console.remove(cluster.type, cluster.id)

    def wait_for_definition(self, name: str) -> None:
        """Wait until the API server serves a kind."""
        wait_until_served(self.charts.client, name)

    def pool(self, name: str, *sizes: str, capacity: str) -> None:
        """Make a NodePool of one capacity type, and wait until it can buy."""
        requirements: list[JsonValue] = [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]},
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(sizes)},
        ]
        reference = {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": name}
        template: Json = {"nodeClassRef": reference, "expireAfter": "Never", "requirements": requirements}
        disruption: Json = {"consolidateAfter": "Never", "consolidationPolicy": "WhenEmpty"}
        self.charts.apply(
            {"apiVersion": NODE_CLASS, "kind": "AKSNodeClass", "metadata": {"name": name}, "spec": {}},
            {
                "apiVersion": NODE_POOL,
                "kind": "NodePool",
                "metadata": {"name": name},
                "spec": {"disruption": disruption, "template": {"spec": template}},
            },
        )
        self.charts.client.wait_for(
            NODE_POOL, "NodePool", name, timeout_seconds=180, condition=is_ready, what=f"{name} is ready"
        )


@contextmanager
def aks_provisioning(folder: Path) -> Generator[AksProvisioning]:
    """A control plane and its host for the length of the block; nothing is in its cloud yet."""
    with operator_cluster(folder) as charts:
        file = EngineFolder.of(STACK, charts.workspace).cloud_states / f"{AZURE}.json"
        yield AksProvisioning(charts=charts, cloud=CloudState(file))
