"""The scale sets behind AKS's node pools: they buy machines and end them, and make none again that was taken."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.simulator.clouds.azure.instances import NUMBER, REGISTER, is_sold_out
from holdfast.simulator.clouds.azure.nodes import NodeTemplate, pools_in, template_of
from holdfast.simulator.clouds.catalogue import catalogue_of
from holdfast.simulator.clouds.machines import Instance, Machine, machines_in
from holdfast.simulator.clouds.state import CloudObject, CloudState, Inventory
from holdfast.simulator.cluster_autoscaler.node_groups import Bought, Lost, PoolSeen
from holdfast.simulator.cluster_autoscaler.scale_up import Purchase

AZURE: Final = "azure-native"


@dataclass(frozen=True, kw_only=True)
class _ScaleSet:
    """A node pool, what its nodes are like, and its machines."""

    target: CloudObject
    template: NodeTemplate
    instances: tuple[Instance, ...]

    def as_seen(self) -> PoolSeen:
        return PoolSeen(pool=self.target, template=self.template, instances=self.instances)


class ScaleSets:
    """The scale sets of a stand-in cloud, which is read anew each time."""

    def __init__(self, cloud: CloudState) -> None:
        self._cloud = cloud

    def seen(self) -> list[PoolSeen]:
        """Return the node pools there are; none in a cloud that is not there."""
        found = _found(self._cloud.read()) if self._cloud.file.exists() else []
        return [one.as_seen() for one in found]

    def machines(self) -> Sequence[Machine]:
        """Return every machine that is a node."""
        return machines_in(self._cloud.read(), catalogue_of(AZURE).fleets)

    def restore(self) -> tuple[bool, list[Lost]]:
        """Do nothing: a machine that Azure took is deleted, and its scale set is smaller for it."""
        return False, []

    def buy(self, purchases: Sequence[Purchase]) -> list[Bought]:
        """Buy machines; returns what came of each purchase whose pool is still there."""
        done: list[Bought] = []
        with self._cloud.changing() as inventory:
            pools = {one.target.id: one for one in _found(inventory)}
            REGISTER.forget_lost_pools({name: one.target for name, one in pools.items()}, inventory)
            for purchase in purchases:
                one = pools.get(purchase.pool)
                if one is not None:
                    done.append(Bought(purchase=purchase, instance=_bought(one, purchase.zone, inventory)))
        return done

    def end(self, nodes: Iterable[str]) -> int:
        """End machines by the names of their nodes, no pool's below its minimum; returns how many."""
        names, ended = set(nodes), 0
        with self._cloud.changing() as inventory:
            for one in _found(inventory):
                spare = len(one.instances) - one.template.minimum if one.template.is_autoscaled else 0
                # The newest first.
                for instance in reversed(one.instances):
                    if instance.name in names and spare > 0:
                        REGISTER.drop(one.target, one.template, instance, inventory)
                        spare, ended = spare - 1, ended + 1
        return ended

    def take(self, node: str) -> None:
        """Take the machine of this node from its scale set, as Azure takes a spot machine back."""
        with self._cloud.changing() as inventory:
            for one in _found(inventory):
                for instance in one.instances:
                    if instance.name == node:
                        REGISTER.drop(one.target, one.template, instance, inventory)

    def group_of(self, _pool: PoolSeen, instance: Instance) -> str:
        """Return the name of the scale set that a machine was bought in, which is the beginning of its own."""
        return instance.name.removesuffix(instance.name[-NUMBER:])

    def out_of_stock(self, _zone: str) -> None:
        """Return nothing: on AKS a pod is not told that there was no machine to be had, in whichever zone."""


def _found(inventory: Inventory) -> list[_ScaleSet]:
    found: list[_ScaleSet] = []
    for pool in pools_in(inventory):
        template = template_of(pool)
        instances = tuple(REGISTER.instances_of(pool.target, template, inventory))
        found.append(_ScaleSet(target=pool.target, template=template, instances=instances))
    return found


def _bought(one: _ScaleSet, zone: str, inventory: Inventory) -> Instance | None:
    if is_sold_out(one.template.name, inventory):
        return None
    instance = REGISTER.new_instance(one.target, one.template, zone, inventory)
    REGISTER.record(one.target, instance, inventory)
    return instance
