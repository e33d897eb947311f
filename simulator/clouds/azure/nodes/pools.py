"""The node pools there are, each with its cluster."""

from dataclasses import dataclass
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.azure.aks import CLUSTER
from holdfast.simulator.clouds.azure.names import same_id
from holdfast.simulator.clouds.state import CloudObject, Inventory

AGENT_POOL: Final = "azure-native:containerservice:AgentPool"


@dataclass(frozen=True, kw_only=True)
class NodePool:
    """A node pool of a cluster."""

    target: CloudObject
    cluster: CloudObject

    @property
    def profile(self) -> Json:
        """What it was asked for, and what AKS has made of that."""
        return self.target.outputs

    @property
    def name(self) -> str:
        """Its name in the cluster."""
        return str(self.profile.get("agentPoolName"))


def pools_in(inventory: Inventory) -> list[NodePool]:
    """Return every node pool of a cloud."""
    found = [pool_of(one, inventory) for one in inventory.of_type(AGENT_POOL)]
    return [pool for pool in found if pool is not None]


def pool_of(one: CloudObject, inventory: Inventory) -> NodePool | None:
    """Return a node pool with its cluster; None where that is not there."""
    cluster = next((each for each in inventory.of_type(CLUSTER) if _is_of(one, each)), None)
    return None if cluster is None else NodePool(target=one, cluster=cluster)


def _is_of(pool: CloudObject, cluster: CloudObject) -> bool:
    place = ("resourceName", "resourceGroupName")
    return all(same_id(pool.inputs.get(field), cluster.inputs.get(field)) for field in place)
