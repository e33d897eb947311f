"""The virtual machines behind node groups: a cloud's own objects, made by no program.

Those a group begins with are known without being written down; what became of one of them is, and so is every other.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from holdfast.simulator.clouds.state import CloudObject, Inventory
from holdfast.simulator.kubernetes_client.objects import mapping

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json


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
