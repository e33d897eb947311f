"""What is known of a pool without a node of it: the resources of its machines, and the labels, taints and zones of its nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pulumi_holdfast.ladder.labels import EFA_NODE, POOL, CapacityType
from pulumi_holdfast.ladder.machines import Machine
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.reachability.machine_capacity import (
    MachineCapacity,
    Provisioner,
    machine_capacity,
)
from pulumi_holdfast.ladder.taints import Taint
from pulumi_holdfast.ladder.windows import ALWAYS, CapacityWindow


@dataclass(frozen=True, kw_only=True)
class MachineSize:
    """The resources of a machine before reservations, memory in MiB."""

    vcpus: int
    memory_mib: int
    gpus: int


@dataclass(frozen=True, kw_only=True)
class PoolSummary:
    """The fallback controller's facts about a pool, because an empty pool has no node to observe.

    `taints` are all taints of its nodes, including those that the cloud adds. `machine` is the minimum of each resource
    over its machine types, `largest` the maximum. `machine_capacities` are those of its machine types, empty if their
    reservations are not known. `zones` are the values of the zone label of its nodes, none if they are not known. `window` is
    when it has its capacity.
    """

    capacity: CapacityType
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    machine: MachineSize
    largest: MachineSize
    max_nodes: int
    machine_capacities: tuple[MachineCapacity, ...] = ()
    zones: tuple[str, ...] = ()
    window: CapacityWindow = ALWAYS


def summarize_pool(
    pool: Pool,
    machines: Sequence[Machine],
    taints: Sequence[Taint],
    labels: Mapping[str, str] | None = None,
    provisioner: Provisioner | None = None,
    zones: Sequence[str] | None = None,
) -> PoolSummary:
    """Summarize a pool of these machines, one or more, whose nodes have `labels` beside the pool label.

    `provisioner` makes its nodes; without it, what is allocatable on them is not known. `zones` are those that it is
    restricted to, if any, as the label of its nodes writes them.
    """
    efa = EFA_NODE in (labels or {})
    capacities = (
        ()
        if provisioner is None
        else tuple(machine_capacity(machine, provisioner, efa=efa) for machine in machines)
    )
    return PoolSummary(
        capacity=pool.capacity,
        labels={POOL: pool.name, **(labels or {})},
        taints=tuple(taints),
        machine=smallest(machines),
        largest=largest(machines),
        max_nodes=pool.max_nodes,
        machine_capacities=capacities,
        zones=tuple(sorted(zones or ())),
        window=pool.window,
    )


def smallest(machines: Sequence[Machine]) -> MachineSize:
    """The minimum of each resource, which every machine of the pool has."""
    return MachineSize(
        vcpus=min(machine.vcpus for machine in machines),
        memory_mib=min(machine.memory_mib for machine in machines),
        gpus=min(machine.gpus for machine in machines),
    )


def largest(machines: Sequence[Machine]) -> MachineSize:
    """The maximum of each resource."""
    return MachineSize(
        vcpus=max(machine.vcpus for machine in machines),
        memory_mib=max(machine.memory_mib for machine in machines),
        gpus=max(machine.gpus for machine in machines),
    )
