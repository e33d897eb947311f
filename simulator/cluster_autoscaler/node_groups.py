"""What an autoscaler works with, whatever cloud it is of: groups of machines that are alike."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.machines import Instance, Machine
from holdfast.simulator.clouds.state import CloudObject
from holdfast.simulator.cluster_autoscaler.scale_up import Purchase


class Template(Protocol):
    """The nodes of one pool: what each is like, where they are, how many there may be."""

    @property
    def name(self) -> str:
        """The pool's name."""
        ...

    @property
    def zones(self) -> tuple[str, ...]:
        """Where its machines are."""
        ...

    @property
    def taints(self) -> tuple[Json, ...]:
        """Those of each node."""
        ...

    @property
    def capacity(self) -> Mapping[str, str]:
        """What each machine has, by resource."""
        ...

    @property
    def allocatable(self) -> Mapping[str, str]:
        """What pods may have of each, by resource."""
        ...

    @property
    def initial(self) -> int:
        """How many come with it."""
        ...

    @property
    def minimum(self) -> int:
        """How many there are at least."""
        ...

    @property
    def maximum(self) -> int:
        """How many there are at most."""
        ...

    @property
    def is_autoscaled(self) -> bool:
        """Whether anybody changes how many there are."""
        ...

    @property
    def is_spot(self) -> bool:
        """Whether its machines can be taken back."""
        ...

    @property
    def spreads(self) -> bool:
        """Whether the zone with the fewest nodes gets the next."""
        ...

    @property
    def hourly_price(self) -> float:
        """What a machine costs."""
        ...

    def labels_in(self, zone: str) -> Mapping[str, str]:
        """Return the labels of the pool's nodes in a zone, but for that with the node's own name."""
        ...


@dataclass(frozen=True, kw_only=True)
class PoolSeen:
    """A pool, and its machines."""

    pool: CloudObject
    template: Template
    instances: tuple[Instance, ...]


@dataclass(frozen=True, kw_only=True)
class Bought:
    """What came of a purchase: the machine, None where there was none to be had."""

    purchase: Purchase
    instance: Instance | None


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A machine that was taken away, and could not be made again."""

    pool: str
    zone: str


class NodeGroups(Protocol):
    """The groups of a stand-in cloud, which is read anew each time."""

    def seen(self) -> list[PoolSeen]:
        """Return the pools there are; none in a cloud that is not there."""
        ...

    def machines(self) -> Sequence[Machine]:
        """Return every machine of the cloud that is a node."""
        ...

    def restore(self) -> tuple[bool, list[Lost]]:
        """Make the machines again that were taken from their groups, as far as the cloud does so by itself.

        Returns whether any was, and what is lost.
        """
        ...

    def buy(self, purchases: Sequence[Purchase]) -> list[Bought]:
        """Buy machines; returns what came of each purchase whose pool is still there."""
        ...

    def end(self, nodes: Iterable[str]) -> int:
        """End machines by the names of their nodes, no pool's below its minimum; returns how many."""
        ...

    def group_of(self, pool: PoolSeen, instance: Instance, /) -> str:
        """Return what events call the group that a machine was bought in."""
        ...

    def out_of_stock(self, zone: str, /) -> str | None:
        """Return what pods are told where there was no machine to be had, None for nothing."""
        ...
