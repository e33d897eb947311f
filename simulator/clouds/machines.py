"""The machines of node groups: as nodes of their cluster, and as records in a cloud's state.

The initial machines of a group are computed from its inputs; only changes to them and further machines are recorded.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, Protocol, TypeAlias, TypeVar

from holdfast.scheduling.json import Json, JsonValue, mapping
from holdfast.simulator.clouds.state import CloudObject, Inventory


@dataclass(frozen=True, kw_only=True)
class SimulatedMachine:
    """A machine that has joined a cluster as a node.

    `name` is stable while the machine runs; `taints` are in the format of a node; `capacity` and `allocatable` are by
    resource (`cpu`, `memory`, `pods`); an empty `allocatable` equals the capacity.
    """

    name: str
    provider_id: str
    labels: Mapping[str, str]
    capacity: Mapping[str, str]
    taints: tuple[Json, ...] = field(default_factory=tuple[Json, ...])
    allocatable: Mapping[str, str] = field(default_factory=dict[str, str])

    def as_node(self) -> Json:
        """Return the machine as a Node object."""
        taints: list[JsonValue] = list(self.taints)
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": dict(self.labels)},
            "spec": {"providerID": self.provider_id, "taints": taints},
        }


@dataclass(frozen=True, kw_only=True)
class Group:
    """An object with machines, such as a node pool."""

    target: CloudObject
    inventory: Inventory


Fleet: TypeAlias = Callable[[Group], Sequence[SimulatedMachine]]
MachineSource: TypeAlias = Callable[[], Sequence[SimulatedMachine]]


def machines_in(inventory: Inventory, fleets: Mapping[str, Fleet]) -> list[SimulatedMachine]:
    """Return all machines of an inventory; `fleets` return the machines of an object, by type."""
    return [
        machine
        for token, fleet in fleets.items()
        for group in inventory.of_type(token)
        for machine in fleet(Group(target=group, inventory=inventory))
    ]


class Nodes(Protocol):
    """The cluster that machines join."""

    def keep(self, source: MachineSource) -> None:
        """Make the nodes equal to the machines of `source`, and wait until they are ready.

        A removed machine is drained first. Concurrent calls run one after another, and each reads its source only when
        it runs. Raises RehearsalError where a machine does not become ready.
        """
        ...


class NoNodes:
    """A cloud without a cluster."""

    def keep(self, source: MachineSource) -> None:
        """Do nothing."""


class State(StrEnum):
    """The state of a machine. DELETED is recorded only for the initial machines of a group."""

    RUNNING = "RUNNING"
    TERMINATED = "TERMINATED"
    DELETED = "DELETED"


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A virtual machine of a group; `generation` counts the machines with its name."""

    name: str
    zone: str
    state: State = State.RUNNING
    generation: int = 1


class Spread(Protocol):
    """The initial machines of a group: their number, and their zones (round robin)."""

    @property
    def zones(self) -> tuple[str, ...]:
        """Where its machines are."""
        ...

    @property
    def initial(self) -> int:
        """How many come with it."""
        ...


T = TypeVar("T", bound=Spread)


@dataclass(frozen=True, kw_only=True)
class Register(Generic[T]):
    """The recorded machines of one type of group.

    `type` is the type of the records; `name` computes the name of a machine from its zone and number, different for
    each number and group.
    """

    type: str
    name: Callable[[CloudObject, T, str, int], str]

    def instances_of(self, pool: CloudObject, template: T, inventory: Inventory) -> list[Instance]:
        """Return the machines of a group that run or will be created again."""
        recorded = {one.name: one for one in self._recorded(pool, inventory)}
        first = {one.name: one for one in self._first(pool, template)}
        return [one for one in {**first, **recorded}.values() if one.state is not State.DELETED]

    def new_instance(self, pool: CloudObject, template: T, zone: str, inventory: Inventory) -> Instance:
        """Return a new machine for a group without recording it."""
        # The initial machines have the first numbers.
        number = template.initial + inventory.next_generation(f"{self.type}::{key_of(pool)}") - 1
        return Instance(name=self.name(pool, template, zone, number), zone=zone)

    def record(self, pool: CloudObject, instance: Instance, inventory: Inventory) -> None:
        """Record the state of a machine."""
        inputs: Json = {
            "pool": pool.id,
            "key": key_of(pool),
            "zone": instance.zone,
            "state": instance.state.value,
            "generation": instance.generation,
        }
        inventory.put(CloudObject(type=self.type, id=instance.name, urn="", inputs=inputs))

    def drop(self, pool: CloudObject, template: T, instance: Instance, inventory: Inventory) -> None:
        """Remove a machine from its group."""
        if instance.name in {one.name for one in self._first(pool, template)}:
            self.record(pool, replace(instance, state=State.DELETED), inventory)
        else:
            inventory.remove(self.type, instance.name)

    def forget_lost_pools(self, pools: Mapping[str, CloudObject], inventory: Inventory) -> None:
        """Delete the records of groups that no longer exist; `pools` are the existing ones, by id."""
        for one in inventory.of_type(self.type):
            pool = pools.get(str(one.inputs.get("pool")))
            if pool is None or one.inputs.get("key") != key_of(pool):
                inventory.remove(self.type, one.id)

    def _recorded(self, pool: CloudObject, inventory: Inventory) -> Iterator[Instance]:
        for one in inventory.of_type(self.type):
            inputs = mapping(one.inputs)
            if inputs.get("pool") == pool.id and inputs.get("key") == key_of(pool):
                generation = inputs.get("generation")
                yield Instance(
                    name=one.id,
                    zone=str(inputs.get("zone")),
                    state=State(str(inputs.get("state"))),
                    generation=generation if isinstance(generation, int) else 1,
                )

    def _first(self, pool: CloudObject, template: T) -> Iterator[Instance]:
        for number in range(template.initial):
            zone = template.zones[number % len(template.zones)]
            yield Instance(name=self.name(pool, template, zone, number), zone=zone)


def key_of(pool: CloudObject) -> str:
    """Return the key that differs between a group and its replacement with the same name."""
    return pool.digest or pool.id
