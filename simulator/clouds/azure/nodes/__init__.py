"""The machines of AKS's node pools: what they are like, which there are, and the nodes they become.

Those of the pool that is part of its cluster are elsewhere: their number never changes.
"""

from holdfast.simulator.clouds.azure.nodes.fleet import machines_of
from holdfast.simulator.clouds.azure.nodes.pools import AGENT_POOL

__all__ = ["AGENT_POOL", "machines_of"]
