"""What a node pool that is being made belongs to."""

from holdfast.simulator.clouds.catalogue import Making
from holdfast.simulator.clouds.gcp.names import project
from holdfast.simulator.clouds.gcp.nodes.places import CLUSTER, NODE_POOL
from holdfast.simulator.clouds.state import CloudObject


def cluster_path(making: Making) -> str:
    """Return the path of a pool's cluster, which the pool names by it or by the cluster's name."""
    given = str(making.inputs.get("cluster"))
    location = making.inputs.get("location") or making.configuration.get("region")
    return given if "/" in given else f"projects/{project(making)}/locations/{location}/clusters/{given}"


def cluster_of(making: Making) -> CloudObject | None:
    """Return a pool's cluster, None where there is none."""
    return making.inventory.find(CLUSTER, cluster_path(making))


def pool_path(making: Making) -> str:
    """Return the path of a pool."""
    return f"{cluster_path(making)}/nodePools/{making.name}"


def pools_of(making: Making) -> list[CloudObject]:
    """Return the other pools of a pool's cluster."""
    beside = f"{cluster_path(making)}/nodePools/"
    pools = making.inventory.of_type(NODE_POOL)
    return [one for one in pools if one.id.startswith(beside) and one.id != making.id]
