"""The machines of GKE node pools: what they are like, which there are, and the nodes they become."""

from rehearsal.providers.cloud.gcp.nodes.fleet import machines_of
from rehearsal.providers.cloud.gcp.nodes.places import NODE_POOL

__all__ = ["NODE_POOL", "machines_of"]
