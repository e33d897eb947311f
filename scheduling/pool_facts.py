"""What the controller is told of a pool, since an empty one has no node to be looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduling.labels import POOL, CapacityType
from scheduling.machines import Machine
from scheduling.pools import Pool
from scheduling.taints import Taint


@dataclass(frozen=True, kw_only=True)
class MachineSize:
    """What a machine has, in MiB for its memory, before anything is reserved on it."""

    vcpus: int
    memory_mib: int
    gpus: int


@dataclass(frozen=True, kw_only=True)
class PoolFacts:
    """How a pool's machines are bought, what its nodes carry, what each has at least, how many there may be.

    `taints` are all that a node of the pool has, those which the cloud adds among them.
    """

    capacity: CapacityType
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    machine: MachineSize
    max_nodes: int


def pool_facts(
    pool: Pool,
    machines: Sequence[Machine],
    taints: Sequence[Taint],
    labels: Mapping[str, str] | None = None,
) -> PoolFacts:
    """The facts of a pool of these machines, one or more, whose nodes have `labels` beside the pool's name."""
    return PoolFacts(
        capacity=pool.capacity,
        labels={POOL: pool.name, **(labels or {})},
        taints=tuple(taints),
        machine=smallest(machines),
        max_nodes=pool.max_nodes,
    )


def smallest(machines: Sequence[Machine]) -> MachineSize:
    """What any of the machines has: whichever is bought, so much of each is there."""
    return MachineSize(
        vcpus=min(machine.vcpus for machine in machines),
        memory_mib=min(machine.memory_mib for machine in machines),
        gpus=min(machine.gpus for machine in machines),
    )
