"""What the other workloads of a program leave to jobs: DaemonSets of each node that they run on, Deployments of a pool's limit.

Karpenter and the cluster autoscalers keep free on the nodes that they plan what DaemonSets take. What the DaemonSets of a cloud
and of charts take is reserved as a fixed amount (`machine_capacity`). Deployments and StatefulSets that select the pool count, and
only where the pool is limited: otherwise more nodes come.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from holdfast.policies.clusters import is_same_cluster
from holdfast.policies.inputs.karpenter import NODE_POOL
from holdfast.policies.inputs.pod_templates import PodTemplate, host_ports
from holdfast.policies.inputs.pool import DeclaredPool
from holdfast.policies.resources import (
    RELEASE,
    StackResource,
    Value,
    at,
    chart_of,
    count,
    is_list,
    is_object,
    items_at,
    known_items,
    of_type,
    once,
    text_at,
)
from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import POOL
from holdfast.scheduling.reachability.facts import PoolFacts
from holdfast.scheduling.reachability.machine_capacity import MachineCapacity
from holdfast.scheduling.reachability.node_selection import matches
from holdfast.scheduling.reachability.shape import Shape, total
from holdfast.scheduling.taints import untolerated

DAEMON_SET: Final = "kubernetes:apps/v1:DaemonSet"
#: The image of NVIDIA's device plugin.
_GPU_PLUGIN: Final = re.compile(r"nvidia.*device-plugin")
_PLUGIN_CHART: Final = "nvidia-device-plugin"
#: The chart's default.
_PLUGIN_TOLERATIONS: Final = (
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
)
_STANDING: Final = re.compile(r"kubernetes:apps/v1:(?P<kind>Deployment|StatefulSet|ReplicaSet)")


@dataclass(frozen=True, kw_only=True)
class _Daemon:
    """A DaemonSet: the shape of its pods as it is written, UNKNOWN if not all of it is known."""

    resource: StackResource
    template: Value
    shape: Shape | Unknown

    @property
    def name(self) -> str:
        """Its name in a message."""
        name = text_at(self.resource.props, "metadata", "name")
        return name if isinstance(name, str) else self.resource.logical_name


def with_workloads(pool: DeclaredPool, resources: Sequence[StackResource]) -> DeclaredPool:
    """Return a pool that has only what the program's other workloads leave to jobs."""
    return _with_standing(_with_daemons(pool, resources), resources)


def _with_daemons(pool: DeclaredPool, resources: Sequence[StackResource]) -> DeclaredPool:
    """Return a pool whose machines have only what the program's DaemonSets leave to jobs."""
    daemons = [
        each
        for each in _daemons(resources)
        if is_same_cluster(each.resource, pool.resource, resources) is not False
    ]
    facts, charts = pool.facts, [each for each in daemons if each.resource.type == RELEASE]
    # What charts take of nodes is in the fixed amount.
    daemons = [each for each in daemons if each.resource.type == DAEMON_SET]
    if not (daemons or charts) or facts.machines is UNKNOWN:
        return pool
    unknown = tuple(
        each.name
        for each in daemons
        if any(_runs_on(each, facts, machine) is UNKNOWN for machine in facts.machines)
    )
    machines = tuple(_less(machine, daemons, facts) for machine in facts.machines)
    unserved = () if pool.provisioner.has_device_plugin else _unserved([*daemons, *charts], facts)
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


def _unserved(daemons: Sequence[_Daemon], facts: PoolFacts) -> Iterator[str]:
    """Yield that no device plugin of the program, one or more, runs on its nodes with GPUs, so that pods can request none."""
    plugins = [each for each in daemons if _offers_gpus(each)]
    machines = [each for each in (() if facts.machines is UNKNOWN else facts.machines) if each.capacity.gpus]
    if plugins and _miss_one(plugins, facts, machines):
        names = ", ".join(sorted(each.name for each in plugins))
        yield f"DaemonSet {names}, which offers GPUs to pods, does not run on its nodes, by its selectors and tolerations"


def _left_tainted(pool: StackResource, daemons: Sequence[_Daemon], facts: PoolFacts) -> Iterator[str]:
    """Yield the startup taints of which the DaemonSets that name them do not run on its nodes: nothing removes these."""
    machines = () if facts.machines is UNKNOWN else facts.machines
    for taint in known_items(pool.props, "spec", "template", "spec", "startupTaints"):
        key = text_at(taint, "key")
        naming = [each for each in daemons if isinstance(key, str) and _names(each.resource.props, key)]
        if naming and _miss_one(naming, facts, machines):
            names = ", ".join(sorted(each.name for each in naming))
            yield f"DaemonSet {names}, which names its startup taint {key}, does not run on its nodes, so the taint may stay"


def _miss_one(daemons: Sequence[_Daemon], facts: PoolFacts, machines: Sequence[MachineCapacity]) -> bool:
    """Whether none of these DaemonSets runs on one of the machines."""
    return any(all(_runs_on(each, facts, machine) is False for each in daemons) for machine in machines)


def _names(value: Value, text: str) -> bool:
    """Whether a text anywhere in a value contains this one."""
    if is_object(value):
        return any(text in key or _names(each, text) for key, each in value.items())
    if isinstance(value, str):
        return text in value
    return is_list(value) and any(_names(each, text) for each in value)


def _offers_gpus(daemon: _Daemon) -> bool:
    containers = items_at(daemon.template, "spec", "containers")
    images = [] if containers is UNKNOWN else [str(text_at(each, "image")) for each in containers]
    return any(_GPU_PLUGIN.search(each) for each in images)


def held_ports(spec: Value, job: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield which host ports of a job's pods a DaemonSet takes on the nodes that it runs on."""
    wanted = host_ports(spec)
    for each in _daemons(resources) if wanted else ():
        taken = wanted & host_ports(at(each.template, "spec"))
        if taken and is_same_cluster(each.resource, job, resources) is not False:
            ports = ", ".join(map(str, sorted(taken)))
            yield f"whether DaemonSet {each.name} takes host port {ports} on the same nodes is not judged"


@once
def _daemons(resources: Sequence[StackResource]) -> tuple[_Daemon, ...]:
    found = (
        *((each, at(each.props, "spec", "template")) for each in of_type(resources, DAEMON_SET)),
        *(
            (each, _of_plugin_chart(at(each.props, "values")))
            for each in of_type(resources, RELEASE)
            if chart_of(each) == _PLUGIN_CHART
        ),
    )
    return tuple(
        _Daemon(
            resource=each,
            template=template,
            shape=PodTemplate(name=each.logical_name, pods=1, template=template).written,
        )
        for each, template in found
    )


def _of_plugin_chart(values: Value) -> Value:
    """Return the pods of NVIDIA's device plugin, as its chart makes them with these values."""
    tolerations = at(values, "tolerations")
    return {
        "spec": {
            "nodeSelector": at(values, "nodeSelector"),
            "affinity": at(values, "affinity"),
            "tolerations": [*_PLUGIN_TOLERATIONS] if tolerations is None else tolerations,
            "containers": [{"name": _PLUGIN_CHART, "image": f"nvidia/{_PLUGIN_CHART}"}],
        }
    }


def _less(machine: MachineCapacity, daemons: Sequence[_Daemon], facts: PoolFacts) -> MachineCapacity:
    # One that certainly runs there has a known shape.
    taken = [
        each.shape.requests
        for each in daemons
        if each.shape is not UNKNOWN and _runs_on(each, facts, machine) is True
    ]
    return replace(
        machine,
        allocatable=machine.allocatable.without(total(taken)) if taken else machine.allocatable,
        max_pods=max(0, machine.max_pods - len(taken)),
    )


def _runs_on(daemon: _Daemon, facts: PoolFacts, machine: MachineCapacity) -> bool | Unknown:
    """Return whether its pods run on nodes of this type; UNKNOWN also if what they request is not known."""
    if daemon.shape is UNKNOWN or facts.taints is UNKNOWN:
        return UNKNOWN
    if untolerated(facts.taints, daemon.shape.tolerations):
        return False
    return matches(daemon.shape, facts, machine)


def _with_standing(pool: DeclaredPool, resources: Sequence[StackResource]) -> DeclaredPool:
    """Return a pool with the shapes of the program's workloads that stand on its nodes."""
    standing = tuple(
        replace(shape, name=title)
        for each, title, template in _selecting(resources)
        if (template.selected(POOL) == pool.label or template.selected(NODE_POOL) == pool.node_pool)
        and isinstance(shape := template.shape, Shape)
        and shape.pods
        and is_same_cluster(each, pool.resource, resources) is not False
    )
    return replace(pool, facts=replace(pool.facts, standing=standing)) if standing else pool


@once
def _selecting(resources: Sequence[StackResource]) -> tuple[tuple[StackResource, str, PodTemplate], ...]:
    """Return the Deployments and StatefulSets that select a pool, with their titles and templates."""
    read = (_standing(each, found["kind"]) for each in resources if (found := _STANDING.fullmatch(each.type)))
    return tuple(each for each in read if any(each[2].selected(key) is not None for key in (POOL, NODE_POOL)))


def _standing(workload: StackResource, kind: str) -> tuple[StackResource, str, PodTemplate]:
    pods, name = count(at(workload.props, "spec", "replicas")), text_at(workload.props, "metadata", "name")
    title = f"{kind} {name if isinstance(name, str) else workload.logical_name!r}"
    template = at(workload.props, "spec", "template")
    return workload, title, PodTemplate(name=title, pods=1 if pods is None else pods, template=template)
