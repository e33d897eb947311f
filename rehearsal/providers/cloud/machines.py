"""The machines that groups of a cloud keep running, as nodes of the cluster they belong to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from rehearsal.providers.cloud.state import CloudObject, Inventory
from scheduling.json import Json, JsonValue


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine that has joined a cluster as a node.

    `name` is the node's, and the same as long as the machine runs; `taints` are as a node spells them; `capacity`
    is by resource: `cpu`, `memory`, `pods`.
    """

    name: str
    provider_id: str
    labels: Mapping[str, str]
    capacity: Mapping[str, str]
    taints: tuple[Json, ...] = field(default_factory=tuple[Json, ...])

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


class Nodes(Protocol):
    """Whoever has a cluster for the machines to join."""

    def keep(self, machines: Sequence[Machine]) -> None:
        """Have these machines as nodes and, of those kept before, no other; return once they are ready.

        A machine that goes is drained first. Raises RehearsalError where one does not get ready.
        """
        ...


class NoNodes:
    """A cloud without a cluster: its machines join nothing."""

    def keep(self, machines: Sequence[Machine]) -> None:
        """Take note of nothing."""
