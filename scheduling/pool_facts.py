"""What the controller is told of a pool, since an empty one has no node to be looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.scheduling.labels import POOL, CapacityType
from holdfast.scheduling.machines import Machine
from holdfast.scheduling.pools import Pool
from holdfast.scheduling.reachability.allocatable import Provisioner, room_of
from holdfast.scheduling.reachability.facts import MachineRoom
from holdfast.scheduling.reachability.rooms import telling_rooms
from holdfast.scheduling.taints import Taint


@dataclass(frozen=True, kw_only=True)
class MachineSize:
    """What a machine has, in MiB for its memory, before anything is reserved on it."""

    vcpus: int
    memory_mib: int
    gpus: int


@dataclass(frozen=True, kw_only=True)
class PoolFacts:
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
    rooms: tuple[MachineRoom, ...] = ()


def pool_facts(
    pool: Pool,
    machines: Sequence[Machine],
    taints: Sequence[Taint],
    labels: Mapping[str, str] | None = None,
    provisioner: Provisioner | None = None,
) -> PoolFacts:
    """The facts of a pool of these machines, one or more, whose nodes have `labels` beside the pool's name.

    `provisioner` is who makes its nodes: without it what pods get of them is not known.
    """
    rooms = () if provisioner is None else tuple(room_of(machine, provisioner) for machine in machines)
    return PoolFacts(
        capacity=pool.capacity,
        labels={POOL: pool.name, **(labels or {})},
        taints=tuple(taints),
        machine=smallest(machines),
        largest=largest(machines),
        max_nodes=pool.max_nodes,
        rooms=telling_rooms(rooms),
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
