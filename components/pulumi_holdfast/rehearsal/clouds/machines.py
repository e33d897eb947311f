"""The machines of node groups: as nodes of their cluster, and as records in a cloud's state.

The initial machines of a group are computed from its inputs; only changes to them and further machines are recorded.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Final, Protocol, TypeAlias

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory


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
class MachineGroup:
    """An object with machines, such as a node pool."""

    target: CloudObject
    inventory: Inventory


Fleet: TypeAlias = Callable[[MachineGroup], Sequence[SimulatedMachine]]
MachineSource: TypeAlias = Callable[[], Sequence[SimulatedMachine]]


def machines_in(inventory: Inventory, fleets: Mapping[str, Fleet]) -> list[SimulatedMachine]:
    """Return all machines of an inventory; `fleets` return the machines of an object, by type."""
    return [
        machine
        for token, fleet in fleets.items()
        for group in inventory.of_type(token)
        for machine in fleet(MachineGroup(target=group, inventory=inventory))
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


class MachineState(StrEnum):
    """The state of a machine. DELETED is recorded only for the initial machines of a group."""

    RUNNING = "RUNNING"
    TERMINATED = "TERMINATED"
    DELETED = "DELETED"


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A virtual machine of a group; `generation` counts the machines with its name."""

    name: str
    zone: str
    state: MachineState = MachineState.RUNNING
    generation: int = 1


#: The label of a node's region.
REGION: Final = "topology.kubernetes.io/region"
# As in the cost model, a spot machine costs a tenth.
SPOT_PRICE: Final = 0.1
_EFFECTS: Final[Mapping[str, str]] = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}


def node_taint(taint: Json) -> Json:
    """Return a taint of a node group in the format of a node."""
    value = {"value": taint["value"]} if taint.get("value") else {}
    effect = str(taint.get("effect"))
    return {"key": taint.get("key"), **value, "effect": _EFFECTS.get(effect, effect)}


def stepped(amount: int, steps: Sequence[tuple[int | None, Fraction | int]]) -> Fraction:
    """Return the part of an amount that a cloud reserves: each step's share of its range; None: without an end."""
    kept, below = Fraction(0), 0
    for upto, share in steps:
        end = amount if upto is None else min(amount, upto)
        kept += max(0, end - below) * share
        below = end
    return kept


def whole_number(value: JsonValue) -> int:
    """Return a number of an object as an integer; 0 for none."""
    return int(value) if isinstance(value, int | float) else 0


@dataclass(frozen=True, kw_only=True)
class NodeTemplate(ABC):
    """The nodes of one pool of a managed node service: their properties, and the limits of their number.

    `initial` nodes are created with the pool, in its zones (round robin); `minimum` and `maximum` limit the whole pool,
    over all zones. `hourly_price` is of one machine, in USD.
    """

    name: str
    zones: tuple[str, ...]
    labels: Mapping[str, str]
    taints: tuple[Json, ...]
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    initial: int
    minimum: int
    maximum: int
    is_autoscaled: bool
    is_spot: bool
    hourly_price: float

    @property
    @abstractmethod
    def spreads(self) -> bool:
        """Whether the zone with the fewest nodes gets the next."""

    @abstractmethod
    def labels_in(self, zone: str) -> Mapping[str, str]:
        """Return the labels of the pool's nodes in a zone, except the hostname."""

    @abstractmethod
    def provider_id(self, name: str, zone: str, /) -> str:
        """Return the id that the cloud provider gives the node of a machine."""

    def machine(self, name: str, zone: str) -> SimulatedMachine:
        """Return a machine of the pool."""
        return SimulatedMachine(
            name=name,
            provider_id=self.provider_id(name, zone),
            labels={**self.labels_in(zone), "kubernetes.io/hostname": name},
            capacity=self.capacity,
            taints=self.taints,
            allocatable=self.allocatable,
        )


@dataclass(frozen=True, kw_only=True)
class Register:
    """The recorded machines of one type of group, and the pools that are out of stock.

    `type` and `stock_out` are the types of the records; `name` computes the name of a machine from its pool, zone and
    number, different for each number and group.
    """

    type: str
    stock_out: str
    name: Callable[[CloudObject, str, int], str]

    def instances_of(self, pool: CloudObject, template: NodeTemplate, inventory: Inventory) -> list[Instance]:
        """Return the machines of a group that run or will be created again."""
        recorded = {one.name: one for one in self._recorded(pool, inventory)}
        first = {one.name: one for one in self._first(pool, template)}
        return [one for one in {**first, **recorded}.values() if one.state is not MachineState.DELETED]

    def new_instance(
        self, pool: CloudObject, template: NodeTemplate, zone: str, inventory: Inventory
    ) -> Instance:
        """Return a new machine for a group without recording it."""
        # The initial machines have the first numbers.
        number = template.initial + inventory.next_generation(f"{self.type}::{key_of(pool)}") - 1
        return Instance(name=self.name(pool, zone, number), zone=zone)

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

    def drop(
        self, pool: CloudObject, template: NodeTemplate, instance: Instance, inventory: Inventory
    ) -> None:
        """Remove a machine from its group."""
        if instance.name in {one.name for one in self._first(pool, template)}:
            self.record(pool, replace(instance, state=MachineState.DELETED), inventory)
        else:
            inventory.remove(self.type, instance.name)

    def forget_lost_pools(self, pools: Mapping[str, CloudObject], inventory: Inventory) -> None:
        """Delete the records of groups that no longer exist; `pools` are the existing ones, by id."""
        for one in inventory.of_type(self.type):
            pool = pools.get(str(one.inputs.get("pool")))
            if pool is None or one.inputs.get("key") != key_of(pool):
                inventory.remove(self.type, one.id)

    def sell_out(self, pool: str, inventory: Inventory, *, zone: str = "") -> None:
        """Put the pool with this name out of stock, in one zone or (default) in all."""
        inventory.put(CloudObject(type=self.stock_out, id=_stock_of(pool, zone), urn="", inputs={}))

    def restock(self, pool: str, inventory: Inventory, *, zone: str = "") -> None:
        """Put a sold-out pool back in stock; idempotent."""
        inventory.remove(self.stock_out, _stock_of(pool, zone))

    def is_sold_out(self, pool: str, zone: str, inventory: Inventory) -> bool:
        """Whether a pool is out of stock in a zone."""
        return any(inventory.find(self.stock_out, _stock_of(pool, where)) for where in ("", zone))

    def _recorded(self, pool: CloudObject, inventory: Inventory) -> Iterator[Instance]:
        for one in inventory.of_type(self.type):
            inputs = mapping(one.inputs)
            if inputs.get("pool") == pool.id and inputs.get("key") == key_of(pool):
                generation = inputs.get("generation")
                yield Instance(
                    name=one.id,
                    zone=str(inputs.get("zone")),
                    state=MachineState(str(inputs.get("state"))),
                    generation=generation if isinstance(generation, int) else 1,
                )

    def _first(self, pool: CloudObject, template: NodeTemplate) -> Iterator[Instance]:
        for number in range(template.initial):
            zone = template.zones[number % len(template.zones)]
            yield Instance(name=self.name(pool, zone, number), zone=zone)


def _stock_of(pool: str, zone: str) -> str:
    return f"{pool}/{zone}" if zone else pool


def key_of(pool: CloudObject) -> str:
    """Return the key that differs between a group and its replacement with the same name."""
    return pool.digest or pool.id
