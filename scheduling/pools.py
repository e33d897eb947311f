"""What the rules know of a pool, whichever cloud it is on."""

from dataclasses import dataclass

from scheduling.labels import CapacityType
from scheduling.taints import Taint, pool_taints


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A pool's scheduling facts.

    `max_nodes` is how many machines it may hold; `is_default` marks the one that takes pods which ask for nothing.
    """

    name: str
    capacity: CapacityType
    has_gpus: bool
    max_nodes: int
    is_default: bool = False

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The taints of the pool's nodes."""
        return pool_taints(capacity=self.capacity, has_gpus=self.has_gpus)
