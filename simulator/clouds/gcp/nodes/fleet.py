"""The machines of a GKE node pool, as the nodes they become."""

from collections.abc import Sequence

from holdfast.simulator.clouds.gcp.nodes.instances import State, instances_of
from holdfast.simulator.clouds.gcp.nodes.template import template_of
from holdfast.simulator.clouds.machines import Group, Machine


def machines_of(group: Group) -> Sequence[Machine]:
    """Return the machines of a node pool that run."""
    template = template_of(group.target, group.inventory)
    return [
        template.machine(one.name, one.zone)
        for one in instances_of(group.target, template, group.inventory)
        if one.state is State.RUNNING
    ]
