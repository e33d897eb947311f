"""What the DaemonSets of a program take of each node that they run on.

Karpenter and the cluster autoscalers keep this much free on the nodes that they plan. What the DaemonSets of a cloud and of
charts take is reserved as a fixed amount (`machine_capacity`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from holdfast.policies.clusters import is_same_cluster
from holdfast.policies.inputs.pod_templates import PodTemplate, host_ports
from holdfast.policies.inputs.pool import DeclaredPool
from holdfast.policies.resources import (
    StackResource,
    Value,
    at,
    is_list,
    is_object,
    items_at,
    known_items,
    once,
    text_at,
)
from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.reachability.facts import PoolFacts
from holdfast.scheduling.reachability.machine_capacity import MachineCapacity
from holdfast.scheduling.reachability.node_selection import matches
from holdfast.scheduling.reachability.shape import Resources, Shape, total
from holdfast.scheduling.taints import untolerated

DAEMON_SET: Final = "kubernetes:apps/v1:DaemonSet"
#: The image of NVIDIA's device plugin.
_GPU_PLUGIN: Final = re.compile(r"nvidia.*device-plugin")
_NOTHING: Final = Resources(cpu_millis=0, memory_mib=0)


def with_daemons(pool: DeclaredPool, resources: Sequence[StackResource]) -> DeclaredPool:
    """Return a pool whose machines have only what the program's DaemonSets leave to jobs."""
    daemons = [
        (resource, template)
        for resource, template in _daemons(resources)
        if is_same_cluster(resource, pool.resource, resources) is not False
    ]
    facts = pool.facts
    if not daemons or facts.machines is UNKNOWN:
        return pool
    unknown = tuple(
        _name(resource)
        for resource, template in daemons
        if any(_runs_on(template, facts, machine) is UNKNOWN for machine in facts.machines)
    )
    machines = tuple(
        _less(machine, [template for _, template in daemons], facts) for machine in facts.machines
    )
    unserved = () if pool.provisioner.has_device_plugin else _unserved(daemons, facts)
    return replace(
        pool,
        facts=replace(
            facts,
            machines=machines,
            unknown_daemons=unknown,
            unmodeled=(*facts.unmodeled, *_left_tainted(pool.resource, daemons, facts)),
            unmodeled_gpus=(*facts.unmodeled_gpus, *unserved),
        ),
    )


def _unserved(daemons: Sequence[tuple[StackResource, PodTemplate]], facts: PoolFacts) -> Iterator[str]:
    """Yield that no device plugin of the program, one or more, runs on its nodes with GPUs, so that pods can request none."""
    plugins = [(_name(resource), template) for resource, template in daemons if _offers_gpus(template)]
    machines = [each for each in (() if facts.machines is UNKNOWN else facts.machines) if each.capacity.gpus]
    if plugins and any(
        all(_runs_on(template, facts, each) is False for _, template in plugins) for each in machines
    ):
        names = ", ".join(sorted(name for name, _ in plugins))
        yield f"DaemonSet {names}, which offers GPUs to pods, does not run on its nodes, by its selectors and tolerations"


def _left_tainted(
    pool: StackResource, daemons: Sequence[tuple[StackResource, PodTemplate]], facts: PoolFacts
) -> Iterator[str]:
    """Yield the startup taints of which the DaemonSets that name them do not run on its nodes: nothing removes these."""
    machines = () if facts.machines is UNKNOWN else facts.machines
    for taint in known_items(pool.props, "spec", "template", "spec", "startupTaints"):
        key = text_at(taint, "key")
        naming = [each for each in daemons if isinstance(key, str) and _names(each[0].props, key)]
        if naming and any(
            all(_runs_on(template, facts, each) is False for _, template in naming) for each in machines
        ):
            names = ", ".join(sorted(_name(resource) for resource, _ in naming))
            yield f"DaemonSet {names}, which names its startup taint {key}, does not run on its nodes, so the taint may stay"


def _names(value: Value, text: str) -> bool:
    """Whether a text anywhere in a value contains this one."""
    if is_object(value):
        return any(text in key or _names(each, text) for key, each in value.items())
    if isinstance(value, str):
        return text in value
    return is_list(value) and any(_names(each, text) for each in value)


def _offers_gpus(template: PodTemplate) -> bool:
    containers = items_at(template.template, "spec", "containers")
    images = [] if containers is UNKNOWN else [str(text_at(each, "image")) for each in containers]
    return any(_GPU_PLUGIN.search(each) for each in images)


def held_ports(spec: Value, job: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield which host ports of a job's pods a DaemonSet takes on the nodes that it runs on."""
    wanted = host_ports(spec)
    for resource, template in _daemons(resources) if wanted else ():
        taken = wanted & host_ports(at(template.template, "spec"))
        if taken and is_same_cluster(resource, job, resources) is not False:
            ports = ", ".join(map(str, sorted(taken)))
            yield f"whether DaemonSet {_name(resource)} takes host port {ports} on the same nodes is not judged"


def _name(resource: StackResource) -> str:
    name = text_at(resource.props, "metadata", "name")
    return name if isinstance(name, str) else resource.logical_name


@once
def _daemons(resources: Sequence[StackResource]) -> tuple[tuple[StackResource, PodTemplate], ...]:
    return tuple(
        (each, PodTemplate(name=each.logical_name, pods=1, template=at(each.props, "spec", "template")))
        for each in resources
        if each.type == DAEMON_SET
    )


def _less(machine: MachineCapacity, daemons: Sequence[PodTemplate], facts: PoolFacts) -> MachineCapacity:
    taken = [*_taken(machine, daemons, facts)]
    return replace(
        machine,
        allocatable=machine.allocatable.without(total(taken)) if taken else machine.allocatable,
        max_pods=max(0, machine.max_pods - len(taken)),
    )


def _taken(machine: MachineCapacity, daemons: Sequence[PodTemplate], facts: PoolFacts) -> Iterator[Resources]:
    """Yield what each DaemonSet that certainly runs on such nodes requests."""
    for template in daemons:
        if _runs_on(template, facts, machine) is True:
            yield template.requests if isinstance(template.requests, Resources) else _NOTHING


def _runs_on(template: PodTemplate, facts: PoolFacts, machine: MachineCapacity) -> bool | Unknown:
    """Return whether its pods run on nodes of this type; UNKNOWN also if what they request is not known."""
    shape = template.shape
    if not isinstance(shape, Shape) or facts.taints is UNKNOWN:
        return UNKNOWN
    # It selects pools by the labels that a move of a job sets.
    selector, terms = template.selector, template.terms
    if selector is UNKNOWN or terms is UNKNOWN:
        return UNKNOWN
    shape = replace(shape, selector=selector, affinity=terms)
    if untolerated(facts.taints, shape.tolerations):
        return False
    return matches(shape, facts, machine)
