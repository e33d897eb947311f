"""The machines that groups of a cloud keep running, as nodes of the cluster they belong to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.state import CloudObject, Inventory


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
Roster: TypeAlias = Callable[[], Sequence[Machine]]


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

    def keep(self, roster: Roster) -> None:
        """Have the machines that `roster` names as nodes and, of those kept before, no other; return once they are ready.

        A machine that goes is drained first. Who runs at the same time waits, and asks its roster only then: two never
        undo each other's work. Raises RehearsalError where a machine does not get ready.
        """
        ...


class NoNodes:
    """A cloud without a cluster: its machines join nothing."""

    def keep(self, roster: Roster) -> None:
        """Take note of nothing."""
