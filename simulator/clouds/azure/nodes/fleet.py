"""The machines of a node pool, as the nodes they become."""

from collections.abc import Sequence

from holdfast.simulator.clouds.azure.nodes.instances import REGISTER
from holdfast.simulator.clouds.azure.nodes.pools import pool_of
from holdfast.simulator.clouds.azure.nodes.template import template_of
from holdfast.simulator.clouds.machines import Group, Machine


def machines_of(group: Group) -> Sequence[Machine]:
    """Return the machines of a node pool; none where its cluster is not there."""
    pool = pool_of(group.target, group.inventory)
    if pool is None:
        return []
    template = template_of(pool)
    instances = REGISTER.instances_of(pool.target, template, group.inventory)
    return [template.machine(one.name, one.zone) for one in instances]
