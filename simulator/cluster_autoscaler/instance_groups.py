"""The instance groups behind node pools: they buy machines, end them, and make those again that were taken from them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from holdfast.simulator.clouds.catalogue import catalogue_of
from holdfast.simulator.clouds.gcp.instances import (
    Instance,
    State,
    drop,
    forget_lost_pools,
    instances_of,
    is_sold_out,
    new_instance,
    record,
)
from holdfast.simulator.clouds.gcp.nodes import NODE_POOL, template_of
from holdfast.simulator.clouds.machines import Machine, machines_in
from holdfast.simulator.clouds.state import CloudState, Inventory
from holdfast.simulator.cluster_autoscaler.node_groups import Bought, Lost, PoolSeen
from holdfast.simulator.cluster_autoscaler.scale_up import Purchase

GCP: Final = "gcp"


class InstanceGroups:
    """The instance groups of a stand-in cloud, which is read anew each time."""

    def __init__(self, cloud: CloudState) -> None:
        self._cloud = cloud

    def seen(self) -> list[PoolSeen]:
        """Return the node pools there are; none in a cloud that is not there."""
        return _seen(self._cloud.read()) if self._cloud.file.exists() else []

    def machines(self) -> Sequence[Machine]:
        """Return every machine that is a node."""
        return machines_in(self._cloud.read(), catalogue_of(GCP).fleets)

    def restore(self) -> tuple[bool, list[Lost]]:
        """Make the machines again that were taken from their groups; returns whether any was, and what is lost.

        They come back under their old names, as Compute Engine's managed groups do it. One that is out of stock is
        given up: the autoscaler takes it off its group, so that it can buy elsewhere.
        """
        if not any(one.state is State.TERMINATED for seen in self.seen() for one in seen.instances):
            return False, []
        came_back, lost = False, list[Lost]()
        with self._cloud.changing() as inventory:
            for seen in _seen(inventory):
                for one in (each for each in seen.instances if each.state is State.TERMINATED):
                    if not is_sold_out(seen.template.name, one.zone, inventory):
                        again = replace(one, state=State.RUNNING, generation=one.generation + 1)
                        record(seen.pool, again, inventory)
                        came_back = True
                    elif seen.template.is_autoscaled:
                        drop(seen.pool, template_of(seen.pool, inventory), one, inventory)
                        lost.append(Lost(pool=seen.pool.id, zone=one.zone))
        return came_back, lost

    def buy(self, purchases: Sequence[Purchase]) -> list[Bought]:
        """Buy machines; returns what came of each purchase whose pool is still there."""
        done: list[Bought] = []
        with self._cloud.changing() as inventory:
            pools = {seen.pool.id: seen for seen in _seen(inventory)}
            forget_lost_pools({name: seen.pool for name, seen in pools.items()}, inventory)
            for purchase in purchases:
                seen = pools.get(purchase.pool)
                if seen is not None:
                    done.append(Bought(purchase=purchase, instance=_bought(seen, purchase.zone, inventory)))
        return done

    def end(self, nodes: Iterable[str]) -> int:
        """End machines by the names of their nodes, no pool's below its minimum; returns how many."""
        names, ended = set(nodes), 0
        with self._cloud.changing() as inventory:
            for seen in _seen(inventory):
                spare = len(seen.instances) - seen.template.minimum if seen.template.is_autoscaled else 0
                # The newest first.
                for one in reversed(seen.instances):
                    if one.name in names and spare > 0:
                        drop(seen.pool, template_of(seen.pool, inventory), one, inventory)
                        spare, ended = spare - 1, ended + 1
        return ended

    def group_of(self, pool: PoolSeen, instance: Instance) -> str:
        """Return the address of the group that a machine was bought in."""
        project = template_of(pool.pool, self._cloud.read()).project
        place = f"https://www.googleapis.com/compute/v1/projects/{project}/zones/{instance.zone}"
        return f"{place}/instanceGroups/{instance.name.rpartition('-')[0]}-grp"

    def out_of_stock(self, zone: str) -> str:
        """Return what GKE tells pods for which Compute Engine had no machine to sell."""
        return (
            f"Node scale up in zones {zone} associated with this pod failed: GCE out of resources. "
            "Pod is at risk of not being scheduled."
        )


def _seen(inventory: Inventory) -> list[PoolSeen]:
    found: list[PoolSeen] = []
    for pool in inventory.of_type(NODE_POOL):
        template = template_of(pool, inventory)
        instances = tuple(instances_of(pool, template, inventory))
        found.append(PoolSeen(pool=pool, template=template, instances=instances))
    return found


def _bought(seen: PoolSeen, zone: str, inventory: Inventory) -> Instance | None:
    if is_sold_out(seen.template.name, zone, inventory):
        return None
    instance = new_instance(seen.pool, template_of(seen.pool, inventory), zone, inventory)
    record(seen.pool, instance, inventory)
    return instance
