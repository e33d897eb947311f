"""The machines of GKE node pools: what they are like, which there are, and the nodes they become."""

from holdfast.simulator.clouds.gcp.nodes.fleet import machines_of
from holdfast.simulator.clouds.gcp.nodes.places import NODE_POOL

__all__ = ["NODE_POOL", "machines_of"]
