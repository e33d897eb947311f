"""The machines that groups of a cloud keep running, as nodes of the cluster they belong to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, Protocol, TypeAlias, TypeVar

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.state import CloudObject, Inventory
from holdfast.simulator.kubernetes_client.objects import mapping


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine that has joined a cluster as a node.

    `name` is the node's, and the same as long as the machine runs; `taints` are as a node spells them; `capacity`
    is by resource: `cpu`, `memory`, `pods`; `allocatable` what of it pods may have, empty where that is all of it.
    """

    name: str
    provider_id: str
    labels: Mapping[str, str]
    capacity: Mapping[str, str]
    taints: tuple[Json, ...] = field(default_factory=tuple[Json, ...])
    allocatable: Mapping[str, str] = field(default_factory=dict[str, str])

    def as_node(self) -> Json:
        """Return the node as an API server is given it."""
        taints: list[JsonValue] = list(self.taints)
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": dict(self.labels)},
            "spec": {"providerID": self.provider_id, "taints": taints},
        }


@dataclass(frozen=True, kw_only=True)
class Group:
    """An object that keeps machines running, among all that exist."""

    target: CloudObject
    inventory: Inventory


Fleet: TypeAlias = Callable[[Group], Sequence[Machine]]
MachineSource: TypeAlias = Callable[[], Sequence[Machine]]


def machines_in(inventory: Inventory, fleets: Mapping[str, Fleet]) -> list[Machine]:
    """Return every machine that runs because some object keeps it running; `fleets` are by the objects' types."""
    return [
        machine
        for token, fleet in fleets.items()
        for group in inventory.of_type(token)
        for machine in fleet(Group(target=group, inventory=inventory))
    ]


class Nodes(Protocol):
    """Whoever has a cluster for the machines to join."""

    def keep(self, source: MachineSource) -> None:
        """Have the machines that `source` names as nodes and, of those kept before, no other; return once they are ready.

        A machine that goes is drained first. Who runs at the same time waits, and asks its source only then: two never
        undo each other's work. Raises RehearsalError where a machine does not get ready.
        """
        ...


class NoNodes:
    """A cloud without a cluster: its machines join nothing."""

    def keep(self, source: MachineSource) -> None:
        """Take note of nothing."""


class State(StrEnum):
    """What a machine does. One that is gone from its group for good is told only of those a group begins with."""

    RUNNING = "RUNNING"
    TERMINATED = "TERMINATED"
    DELETED = "DELETED"


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A virtual machine of a group, in a zone; `generation` counts the machines there were of its name."""

    name: str
    zone: str
    state: State = State.RUNNING
    generation: int = 1


class Spread(Protocol):
    """How many machines a group begins with, and in which zones, one after the other."""

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
    """What is written down of the machines of one kind of group.

    `type` is the type of those entries; `name` makes the name of the machine of a number in a zone, another one for each
    number, and for each group.
    """

    type: str
    name: Callable[[CloudObject, T, str, int], str]

    def instances_of(self, pool: CloudObject, template: T, inventory: Inventory) -> list[Instance]:
        """Return the machines of a group that run or are to run again."""
        recorded = {one.name: one for one in self._recorded(pool, inventory)}
        first = {one.name: one for one in self._first(pool, template)}
        return [one for one in {**first, **recorded}.values() if one.state is not State.DELETED]

    def new_instance(self, pool: CloudObject, template: T, zone: str, inventory: Inventory) -> Instance:
        """Return another machine for a group; nothing is recorded."""
        # The machines it begins with have the first numbers.
        number = template.initial + inventory.next_generation(f"{self.type}::{key_of(pool)}") - 1
        return Instance(name=self.name(pool, template, zone, number), zone=zone)

    def record(self, pool: CloudObject, instance: Instance, inventory: Inventory) -> None:
        """Write down what a machine is now."""
        inputs: Json = {
            "pool": pool.id,
            "key": key_of(pool),
            "zone": instance.zone,
            "state": instance.state.value,
            "generation": instance.generation,
        }
        inventory.put(CloudObject(type=self.type, id=instance.name, urn="", inputs=inputs))

    def drop(self, pool: CloudObject, template: T, instance: Instance, inventory: Inventory) -> None:
        """Take a machine off its group for good."""
        if instance.name in {one.name for one in self._first(pool, template)}:
            self.record(pool, replace(instance, state=State.DELETED), inventory)
        else:
            inventory.remove(self.type, instance.name)

    def forget_lost_pools(self, pools: Mapping[str, CloudObject], inventory: Inventory) -> None:
        """Drop what is written down of the machines of groups that are gone; `pools` are those there are, by id."""
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
    """Return what tells a group from a later one of its name."""
    return pool.digest or pool.id
