"""What the rules know of a pool, whichever cloud it is on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.scheduling.labels import POOL, CapacityType
from holdfast.scheduling.machines import Machine
from holdfast.scheduling.reachability.machine_capacity import (
    MachineCapacity,
    Provisioner,
    machine_capacity,
    non_dominated,
)
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


@dataclass(frozen=True, kw_only=True)
class MachineSize:
    """What a machine has, in MiB for its memory, before anything is reserved on it."""

    vcpus: int
    memory_mib: int
    gpus: int


@dataclass(frozen=True, kw_only=True)
class PoolSummary:
    """How a pool's machines are bought, what its nodes carry, what each has at least and at most, how many there may be.

    `taints` are all that a node of the pool has, those which the cloud adds among them. `rooms` is what pods get of
    its machines, of those that tell all there is to tell; empty where that is not known.
    """

    capacity: CapacityType
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    machine: MachineSize
    largest: MachineSize
    max_nodes: int
    machine_capacities: tuple[MachineCapacity, ...] = ()


def summarize_pool(
    pool: Pool,
    machines: Sequence[Machine],
    taints: Sequence[Taint],
    labels: Mapping[str, str] | None = None,
    provisioner: Provisioner | None = None,
) -> PoolSummary:
    """The facts of a pool of these machines, one or more, whose nodes have `labels` beside the pool's name.

    `provisioner` is who makes its nodes: without it what pods get of them is not known.
    """
    capacities = (
        () if provisioner is None else tuple(machine_capacity(machine, provisioner) for machine in machines)
    )
    return PoolSummary(
        capacity=pool.capacity,
        labels={POOL: pool.name, **(labels or {})},
        taints=tuple(taints),
        machine=smallest(machines),
        largest=largest(machines),
        max_nodes=pool.max_nodes,
        machine_capacities=non_dominated(capacities),
    )


def smallest(machines: Sequence[Machine]) -> MachineSize:
    """What any of the machines has: whichever is bought, so much of each is there."""
    return MachineSize(
        vcpus=min(machine.vcpus for machine in machines),
        memory_mib=min(machine.memory_mib for machine in machines),
        gpus=min(machine.gpus for machine in machines),
    )


def largest(machines: Sequence[Machine]) -> MachineSize:
    """What none of the machines has more of."""
    return MachineSize(
        vcpus=max(machine.vcpus for machine in machines),
        memory_mib=max(machine.memory_mib for machine in machines),
        gpus=max(machine.gpus for machine in machines),
    )


#: Each type is a spot market of its own; with fewer than this many, the pool is as good as its worst day on one.
ENOUGH_TYPES: Final = 3


def spot_pool_warnings(pool: Pool, machines: Sequence[Machine]) -> list[str]:
    """What may disappoint about a spot pool that is allowed to be as it is; nothing for a pool on-demand."""
    if pool.capacity is not CapacityType.SPOT:
        return []
    warnings: list[str] = []
    names = ", ".join(machine.name for machine in machines)
    if len(machines) < ENOUGH_TYPES:
        warnings.append(
            f"pool {pool.name} buys {_count(len(machines), 'machine type')} on spot ({names}). Each type is a spot "
            f"market of its own: with fewer than {ENOUGH_TYPES}, one that sells out or is taken back stops the jobs "
            "here more often. List more types that the jobs can run on."
        )
    kinds = {_accelerators(machine): machine.name for machine in reversed(machines)}
    if len(kinds) > 1:
        held = ", ".join(f"{name} has {kind}" for kind, name in reversed(kinds.items()))
        warnings.append(
            f"pool {pool.name} buys machines with different accelerators ({held}). A job on several nodes may get some "
            "of each: it then waits for the slowest one at every step, and fits only if its pods fit on the smallest. "
            "Make a pool of each kind, and a tier of each pool."
        )
    return warnings


def _accelerators(machine: Machine) -> str:
    return f"{machine.gpus} {machine.accelerator or 'GPUs'}" if machine.gpus else "none"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
