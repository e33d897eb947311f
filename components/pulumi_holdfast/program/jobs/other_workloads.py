"""What the other workloads of a program leave to jobs: DaemonSets of each node that they run on, Deployments of a pool's limit.

Karpenter and the cluster autoscalers keep free on the nodes that they plan what DaemonSets take. What the DaemonSets of a cloud
and of charts take is reserved as a fixed amount (`machine_capacity`). Deployments and StatefulSets that select the pool count, and
only where the pool is limited: otherwise more nodes come.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.ladder.reachability.facts import PoolFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.ladder.reachability.shape import Shape, total
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.jobs.pod_templates import PodTemplate, host_ports
from pulumi_holdfast.program.nodes.node_agents import Daemon, daemon_sets, missing_agents, missing_gpu_plugins
from pulumi_holdfast.program.pools.karpenter import NODE_POOL
from pulumi_holdfast.program.pools.pool import DeclaredPool
from pulumi_holdfast.program.resources import StackResource, Value, at, count, once, text_at

_STANDING: Final = re.compile(r"kubernetes:apps/v1:(?P<kind>Deployment|StatefulSet|ReplicaSet)")


def with_workloads(pool: DeclaredPool, resources: Sequence[StackResource]) -> DeclaredPool:
    """Return a pool that has only what the program's other workloads leave to jobs."""
    return _with_standing(_with_daemons(pool, resources), resources)


def _with_daemons(pool: DeclaredPool, resources: Sequence[StackResource]) -> DeclaredPool:
    """Return a pool whose machines have only what the program's DaemonSets leave to jobs."""
    daemons = [
        each
        for each in daemon_sets(resources)
        if is_same_cluster(each.resource, pool.resource, resources) is not False
    ]
    facts = pool.facts
    if facts.machines is UNKNOWN:
        return pool
    unknown = tuple(
        each.name
        for each in daemons
        if any(each.runs_on(facts, machine) is UNKNOWN for machine in facts.machines)
    )
    return replace(
        pool,
        facts=replace(
            facts,
            machines=tuple(_less(machine, daemons, facts) for machine in facts.machines),
            unknown_daemons=unknown,
            unmodeled=(*facts.unmodeled, *missing_agents(pool, resources)),
            unmodeled_gpus=(*facts.unmodeled_gpus, *missing_gpu_plugins(pool, resources)),
        ),
    )


def held_ports(spec: Value, job: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield which host ports of a job's pods a DaemonSet takes on the nodes that it runs on."""
    wanted = host_ports(spec)
    for each in daemon_sets(resources) if wanted else ():
        taken = wanted & host_ports(at(each.template, "spec"))
        if taken and is_same_cluster(each.resource, job, resources) is not False:
            ports = ", ".join(map(str, sorted(taken)))
            yield f"whether DaemonSet {each.name} takes host port {ports} on the same nodes is not judged"


def _less(machine: MachineCapacity, daemons: Sequence[Daemon], facts: PoolFacts) -> MachineCapacity:
    # One that certainly runs there has a known shape.
    taken = [
        each.shape.requests
        for each in daemons
        if each.shape is not UNKNOWN and each.runs_on(facts, machine) is True
    ]
    if not taken:
        return machine
    return replace(
        machine,
        allocatable=machine.allocatable.without(total(taken)),
        max_pods=max(0, machine.max_pods - len(taken)),
    )


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
