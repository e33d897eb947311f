"""Pools on any cloud: the properties that scheduling, the fallback controller and warnings use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine
from pulumi_holdfast.ladder.taints import Taint, pool_taints
from pulumi_holdfast.ladder.windows import ALWAYS, CapacityWindow

#: Karpenter tries the NodePools that a pod fits from the highest weight, 100, to the lowest, 1.
DEFAULT_WEIGHT: Final = 100
LOWEST_WEIGHT: Final = 1


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A pool as the configuration declares it.

    `max_nodes` is approximate: Karpenter's limits count resources, as if each machine were the largest of the pool's
    types. `is_default` marks the pool for pods without a node selector. `window` is when a reserved pool has its capacity.
    """

    name: str
    capacity: CapacityType
    has_gpus: bool
    max_nodes: int
    is_default: bool = False
    window: CapacityWindow = ALWAYS

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The taints of the pool's nodes if Karpenter makes them."""
        return pool_taints(capacity=self.capacity, has_gpus=self.has_gpus)


def weights(pools: Sequence[Pool]) -> Mapping[str, int]:
    """Each pool's weight: the default pool first, the others in their listed order.

    Without weights Karpenter breaks ties by name: a pod for any GPU on spot then bought an H100 machine although an A100
    one was listed first.
    """
    others = [pool.name for pool in pools if not pool.is_default]
    ordered = {name: max(LOWEST_WEIGHT, DEFAULT_WEIGHT - index) for index, name in enumerate(others, start=1)}
    return {**ordered, **{pool.name: DEFAULT_WEIGHT for pool in pools if pool.is_default}}


#: Each type is a separate spot market; with fewer types, one that sells out often stops the pool's jobs.
ENOUGH_TYPES: Final = 3


def spot_pool_warnings(pool: Pool, machines: Sequence[Machine]) -> list[str]:
    """Warnings about a valid spot pool that may not perform well; none for an on-demand pool."""
    if pool.capacity is not CapacityType.SPOT:
        return []
    warnings: list[str] = []
    names = ", ".join(machine.name for machine in machines)
    if len(machines) < ENOUGH_TYPES:
        warnings.append(
            f"pool {pool.name} buys {_count(len(machines), 'machine type')} on spot ({names}). Each type is a "
            f"separate spot market: with fewer than {ENOUGH_TYPES}, one that sells out or is reclaimed stops the jobs on "
            "this pool more often. List more types that the jobs can run on."
        )
    kinds = {_accelerators(machine): machine.name for machine in reversed(machines)}
    if len(kinds) > 1:
        listed = ", ".join(f"{name} has {kind}" for kind, name in reversed(kinds.items()))
        warnings.append(
            f"pool {pool.name} buys machines with different accelerators ({listed}). A job on several nodes may get some "
            "of each: it then waits for the slowest one at every step, and fits only if its pods fit on the smallest. "
            "Make a pool for each accelerator, and a tier for each pool."
        )
    return warnings


def _accelerators(machine: Machine) -> str:
    return f"{machine.gpus} {machine.accelerator or 'GPUs'}" if machine.gpus else "none"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
