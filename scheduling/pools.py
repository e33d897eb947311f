"""What the rules know of a pool, whichever cloud it is on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.taints import Taint, pool_taints

#: Karpenter tries the NodePools a pod fits in from the highest weight, 100, down to the lowest, 1.
DEFAULT_WEIGHT: Final = 100
LOWEST_WEIGHT: Final = 1


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A pool's scheduling facts.

    `max_nodes` is about how many machines it may hold: what keeps a pool that small counts what its machines hold,
    as if each were the largest of its types. `is_default` marks the one that takes pods which ask for nothing.
    """

    name: str
    capacity: CapacityType
    has_gpus: bool
    max_nodes: int
    is_default: bool = False

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The taints of the pool's nodes where Karpenter makes them."""
        return pool_taints(capacity=self.capacity, has_gpus=self.has_gpus)


def weights(pools: Sequence[Pool]) -> Mapping[str, int]:
    """Each pool's weight: the default pool first, the others in the order in which they are listed.

    Without weights Karpenter breaks the tie by name: a pod that asks for any GPU on spot then bought an H100 machine
    where an A100 one was listed before it.
    """
    others = [pool.name for pool in pools if not pool.is_default]
    ordered = {name: max(LOWEST_WEIGHT, DEFAULT_WEIGHT - place) for place, name in enumerate(others, start=1)}
    return {**ordered, **{pool.name: DEFAULT_WEIGHT for pool in pools if pool.is_default}}
