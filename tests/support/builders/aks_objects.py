"""AKS clusters and node pools as objects of the simulated cloud."""

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.clouds.azure.cluster import CLUSTER
from pulumi_holdfast.rehearsal.clouds.azure.names import SUBSCRIPTION
from pulumi_holdfast.rehearsal.clouds.azure.nodes import AGENT_POOL
from pulumi_holdfast.rehearsal.clouds.state import CloudObject

GROUP = "holdfast-test"
NAME = "holdfast-test"
CLUSTER_ID = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.ContainerService/managedClusters/{NAME}"


def aks_cluster(*, provisions_nodes: bool = False, **inputs: JsonValue) -> CloudObject:
    """A cluster on an overlay network; without node auto-provisioning unless that is said."""
    made: Json = {
        "resourceName": NAME,
        "resourceGroupName": GROUP,
        "nodeResourceGroup": f"{NAME}-nodes",
        "location": "eastus2",
        "networkProfile": {"networkPlugin": "azure", "networkPluginMode": "overlay"},
        "nodeProvisioningProfile": {"mode": "Auto" if provisions_nodes else "Manual"},
        **inputs,
    }
    return CloudObject(type=CLUSTER, id=CLUSTER_ID, urn="", inputs=made, digest="c1" * 32)


def agent_pool(
    name: str = "cpu", *, spot: bool = False, digest: str = "d1", **inputs: JsonValue
) -> CloudObject:
    """A node pool that grows from nothing to four machines of four cores."""
    labels: Json = {"holdfast.dev/pool": name, "karpenter.sh/capacity-type": "spot" if spot else "on-demand"}
    ours: list[JsonValue] = ["karpenter.sh/capacity-type=spot:NoSchedule"] if spot else []
    made: Json = {
        "agentPoolName": name,
        "resourceName": NAME,
        "resourceGroupName": GROUP,
        "vmSize": "Standard_D4ds_v5",
        "availabilityZones": ["1", "2"],
        "enableAutoScaling": True,
        "count": 0,
        "minCount": 0,
        "maxCount": 4,
        "nodeLabels": labels,
        "nodeTaints": ours,
        **({"scaleSetPriority": "Spot"} if spot else {}),
        **inputs,
    }
    return CloudObject(
        type=AGENT_POOL, id=f"{CLUSTER_ID}/agentPools/{name}", urn="", inputs=made, digest=digest
    )
