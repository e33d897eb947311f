"""The node groups that the autoscaler resizes: GKE's managed instance groups and AKS's scale sets.

Every call reads the simulated cloud's state again, because `pulumi up` changes it at the same time.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pulumi_holdfast.rehearsal.clouds.azure import instances as azure_instances
from pulumi_holdfast.rehearsal.clouds.azure import nodes as azure_nodes
from pulumi_holdfast.rehearsal.clouds.catalogue import catalogue_of
from pulumi_holdfast.rehearsal.clouds.gcp import instances as gcp_instances
from pulumi_holdfast.rehearsal.clouds.gcp import nodes as gcp_nodes
from pulumi_holdfast.rehearsal.clouds.machines import (
    Instance,
    MachineState,
    NodeTemplate,
    Register,
    SimulatedMachine,
    machines_in,
)
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState, Inventory
from pulumi_holdfast.rehearsal.cluster_autoscaler.scale_up import Purchase

GCP: Final = "gcp"
AZURE: Final = "azure-native"


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """A node pool and its machines."""

    pool: CloudObject
    template: NodeTemplate
    instances: tuple[Instance, ...]


@dataclass(frozen=True, kw_only=True)
class Bought:
    """The result of a purchase: the machine, or None where the pool is out of stock."""

    purchase: Purchase
    instance: Instance | None


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A preempted machine that its group gave up, because its pool is out of stock."""

    pool: str
    zone: str


class NodeGroups(ABC):
    """The node groups of one simulated cloud; `cloud` is its state."""

    package: str
    register: Register

    def __init__(self, cloud: CloudState) -> None:
        self._cloud = cloud

    def groups(self) -> list[NodeGroup]:
        """Return the node groups; none where the cloud has no state file."""
        return self._groups_in(self._cloud.read()) if self._cloud.file.exists() else []

    def machines(self) -> Sequence[SimulatedMachine]:
        """Return every machine of the cloud that is a node."""
        return machines_in(self._cloud.read(), catalogue_of(self.package).fleets)

    @abstractmethod
    def restore(self) -> tuple[bool, list[Lost]]:
        """Create preempted machines again, where the cloud does so by itself.

        Returns whether a machine was created, and the machines that were given up.
        """

    def buy(self, purchases: Sequence[Purchase]) -> list[Bought]:
        """Buy machines; return the result of each purchase whose pool still exists."""
        done: list[Bought] = []
        with self._cloud.changing() as inventory:
            groups = {group.pool.id: group for group in self._groups_in(inventory)}
            self.register.forget_lost_pools({name: group.pool for name, group in groups.items()}, inventory)
            for purchase in purchases:
                group = groups.get(purchase.pool)
                if group is not None:
                    done.append(
                        Bought(purchase=purchase, instance=self._bought(group, purchase.zone, inventory))
                    )
        return done

    def end(self, nodes: Iterable[str]) -> int:
        """Delete machines by their node names, no pool's below its minimum; return how many."""
        names, ended = set(nodes), 0
        with self._cloud.changing() as inventory:
            for group in self._groups_in(inventory):
                template = group.template
                spare = len(group.instances) - template.minimum if template.is_autoscaled else 0
                # The newest first.
                for instance in reversed(group.instances):
                    if instance.name in names and spare > 0:
                        self._drop(group, instance, inventory)
                        spare, ended = spare - 1, ended + 1
        return ended

    def take(self, node: str) -> None:
        """Preempt the machine of a node."""
        with self._cloud.changing() as inventory:
            for group in self._groups_in(inventory):
                for instance in group.instances:
                    if instance.name == node:
                        self._take(group, instance, inventory)

    @abstractmethod
    def _take(self, group: NodeGroup, instance: Instance, inventory: Inventory) -> None: ...

    @abstractmethod
    def group_of(self, group: NodeGroup, instance: Instance, /) -> str:
        """Return the name that events give the group of a machine."""

    @abstractmethod
    def out_of_stock(self, zone: str, /) -> str | None:
        """Return the event message for pods whose pool is out of stock, None for no event."""

    @abstractmethod
    def _pools_in(self, inventory: Inventory) -> Iterator[tuple[CloudObject, NodeTemplate]]: ...

    def _groups_in(self, inventory: Inventory) -> list[NodeGroup]:
        return [
            NodeGroup(
                pool=pool,
                template=template,
                instances=tuple(self.register.instances_of(pool, template, inventory)),
            )
            for pool, template in self._pools_in(inventory)
        ]

    def _bought(self, group: NodeGroup, zone: str, inventory: Inventory) -> Instance | None:
        if self.register.is_sold_out(group.template.name, zone, inventory):
            return None
        instance = self.register.new_instance(group.pool, group.template, zone, inventory)
        self.register.record(group.pool, instance, inventory)
        return instance

    def _drop(self, group: NodeGroup, instance: Instance, inventory: Inventory) -> None:
        self.register.drop(group.pool, group.template, instance, inventory)


class InstanceGroups(NodeGroups):
    """GKE's managed instance groups: they create preempted machines again under their old names."""

    package = GCP
    register = gcp_instances.REGISTER

    def restore(self) -> tuple[bool, list[Lost]]:
        """Create preempted machines again; give up those of an autoscaled pool that is out of stock.

        The autoscaler then buys a machine of another pool instead.
        """
        if not any(
            one.state is MachineState.TERMINATED for group in self.groups() for one in group.instances
        ):
            return False, []
        came_back, lost = False, list[Lost]()
        with self._cloud.changing() as inventory:
            for group in self._groups_in(inventory):
                for one in (each for each in group.instances if each.state is MachineState.TERMINATED):
                    if not self.register.is_sold_out(group.template.name, one.zone, inventory):
                        again = replace(one, state=MachineState.RUNNING, generation=one.generation + 1)
                        self.register.record(group.pool, again, inventory)
                        came_back = True
                    elif group.template.is_autoscaled:
                        self._drop(group, one, inventory)
                        lost.append(Lost(pool=group.pool.id, zone=one.zone))
        return came_back, lost

    def group_of(self, group: NodeGroup, instance: Instance, /) -> str:
        """Return the URL of a machine's instance group."""
        project = gcp_nodes.project_of(group.pool)
        zone = f"https://www.googleapis.com/compute/v1/projects/{project}/zones/{instance.zone}"
        return f"{zone}/instanceGroups/{instance.name.rpartition('-')[0]}-grp"

    def out_of_stock(self, zone: str, /) -> str:
        """Return GKE's message."""
        return (
            f"Node scale up in zones {zone} associated with this pod failed: GCE out of resources. "
            "Pod is at risk of not being scheduled."
        )

    def _take(self, group: NodeGroup, instance: Instance, inventory: Inventory) -> None:
        self.register.record(group.pool, replace(instance, state=MachineState.TERMINATED), inventory)

    def _pools_in(self, inventory: Inventory) -> Iterator[tuple[CloudObject, NodeTemplate]]:
        for pool in inventory.of_type(gcp_nodes.NODE_POOL):
            yield pool, gcp_nodes.template_of(pool, inventory)


class ScaleSets(NodeGroups):
    """AKS's scale sets: a preempted machine is deleted, and its scale set is smaller by one."""

    package = AZURE
    register = azure_instances.REGISTER

    def restore(self) -> tuple[bool, list[Lost]]:
        """Do nothing."""
        return False, []

    def group_of(self, _group: NodeGroup, instance: Instance, /) -> str:
        """Return the name of a machine's scale set, which is the prefix of the machine's own."""
        return instance.name[: -azure_instances.NUMBER]

    def out_of_stock(self, _zone: str, /) -> None:
        """Return None: AKS sends no event when a pool is out of stock."""

    def _take(self, group: NodeGroup, instance: Instance, inventory: Inventory) -> None:
        self._drop(group, instance, inventory)

    def _pools_in(self, inventory: Inventory) -> Iterator[tuple[CloudObject, NodeTemplate]]:
        for pool in azure_nodes.pools_in(inventory):
            yield pool.target, azure_nodes.template_of(pool)
