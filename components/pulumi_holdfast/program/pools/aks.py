"""Reads AKS' agent pools, declared by themselves or inside their cluster, with what AKS adds to their nodes.

Each is a scale set of one VM size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import AKS_SCALE_SET_PRIORITY, AKS_SPOT_VALUE, ON_DEMAND, POOL, SPOT
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.reachability.affinity import LabelFact
from pulumi_holdfast.ladder.reachability.facts import Limits, PoolFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity, Provisioner
from pulumi_holdfast.ladder.taints import AKS_SPOT, Taint
from pulumi_holdfast.program.clusters import clusters_of
from pulumi_holdfast.program.fields import azure
from pulumi_holdfast.program.fields.table import Fields
from pulumi_holdfast.program.pools.admission import tolerations_for
from pulumi_holdfast.program.pools.pool import (
    LEAST_PRIORITY,
    NO_DRIVER,
    WINDOWS,
    DeclaredPool,
    known_taints,
    machines_named,
)
from pulumi_holdfast.program.pools.refused_pools import refused_by_aks
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    count,
    is_list,
    items_at,
    labels_at,
    once,
    text_at,
    texts_at,
    whole_number,
)

# With or without an API version between the module and the type.
_AGENT_POOL: Final = re.compile(r"azure-native:containerservice(/v\w+)?:AgentPool")
#: AKS' defaults of `maxPods` where pods have addresses of the nodes' subnet, and with kubenet; with an overlay it is 250.
_NODE_SUBNET_PODS: Final = 30
_KUBENET_PODS: Final = 110
#: The nodes of a pool that neither autoscales nor says how many it has.
_DEFAULT_COUNT: Final = 1
#: In place of a size that AKS chooses.
_NO_SIZE: Final = "its default size"
_CLUSTER: Final = re.compile(r"azure-native:containerservice(/v\w+)?:ManagedCluster")


def is_agent_pool(type_token: str) -> bool:
    """Whether the type is an agent pool of any API version."""
    return _AGENT_POOL.fullmatch(type_token) is not None


def is_cluster(type_token: str) -> bool:
    """Whether the type is an AKS cluster of any API version."""
    return _CLUSTER.fullmatch(type_token) is not None


@once
def aks_pools(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """Return the pools of the stack's agent pools and clusters."""
    return tuple(pool for resource in resources for pool in _pools(resource, resources))


def _pools(resource: StackResource, resources: Sequence[StackResource]) -> Iterator[DeclaredPool]:
    """Yield the pools that one resource declares; a cluster whose profiles are not known yet declares none."""
    if is_agent_pool(resource.type):
        is_for_jobs = not _is(resource.props, "mode", "System")
        pool = _pool(resource, resource.props, "agentPoolName", resources, is_for_jobs=is_for_jobs)
        yield _with_unread(pool, azure.AGENT_POOL, resource.declared)
    elif is_cluster(resource.type):
        profiles, declared = (
            items_at(each, "agentPoolProfiles") for each in (resource.props, resource.declared)
        )
        for index, profile in enumerate(profiles if profiles is not UNKNOWN else ()):
            is_for_jobs = not _is(profile, "mode", "System")
            pool = _pool(resource, profile, "name", resources, is_for_jobs=is_for_jobs)
            where = f"agentPoolProfiles[{index}]."
            inputs = declared[index] if declared is not UNKNOWN and index < len(declared) else profile
            yield replace(
                _with_unread(pool, azure.PROFILE, inputs),
                labels_path=where + pool.labels_path,
                taints_path=where + pool.taints_path,
            )


def _with_unread(pool: DeclaredPool, fields: Fields, declared: Value) -> DeclaredPool:
    """Return a pool with what it sets that no rule judges."""
    unread = fields.unread(declared, pool.title)
    return replace(pool, facts=replace(pool.facts, unmodeled=(*pool.facts.unmodeled, *unread)))


def _pool(
    resource: StackResource,
    profile: Value,
    name_field: str,
    resources: Sequence[StackResource],
    *,
    is_for_jobs: bool,
) -> DeclaredPool:
    label, declared = text_at(profile, "nodeLabels", POOL), text_at(profile, name_field)
    name = declared if isinstance(declared, str) else resource.logical_name
    priority = text_at(profile, "scaleSetPriority")
    is_spot = _is(profile, "scaleSetPriority", "Spot")
    sizes, limits = _sizes(profile)
    most_pods = _most_pods(profile, resource, resources)
    # As how many GPUs its nodes list the partitions of one depends on the device plugin.
    divided = at(profile, "gpuInstanceProfile") is not None
    named = UNKNOWN if divided or UNKNOWN in sizes else [_as_listed(str(each or _NO_SIZE)) for each in sizes]
    machines = machines_named(named, "azure", Provisioner.AKS)
    return DeclaredPool(
        resource=resource,
        profile=profile,
        provisioner=Provisioner.AKS,
        label=label,
        node_pool=name,
        title=f"agent pool {name!r}",
        labels_path="nodeLabels",
        taints_path="nodeTaints",
        facts=PoolFacts(
            name=label if isinstance(label, str) else resource.logical_name,
            title=f"agent pool {name!r}",
            capacity_types=frozenset({SPOT if is_spot else ON_DEMAND}),
            is_decided=priority is not UNKNOWN,
            labels=_labels(profile, is_spot=is_spot),
            taints=_taints(profile, is_spot=is_spot),
            machines=_with_most_pods(most_pods, machines.capacities),
            unknown_machine_types=machines.unknown_types,
            limits=limits,
            least_priority=_least_priority(profile),
            faults=tuple(refused_by_aks(profile)),
            is_stopped=_is(at(profile, "powerState"), "code", "Stopped"),
            unmodeled=(WINDOWS,) if _is(profile, "osType", "Windows") else (),
            unmodeled_gpus=(NO_DRIVER,) if _is(at(profile, "gpuProfile"), "driver", "None") else (),
            zones=texts_at(profile, "availabilityZones"),
            is_compact=True if text_at(profile, "proximityPlacementGroupID") else None,
            added_tolerations=tolerations_for(label, Provisioner.AKS, resources),
        ),
        is_for_jobs=is_for_jobs,
    )


def _is(profile: Value, field: str, value: str) -> bool:
    """Whether a field has one of Azure's own values, which Azure accepts in any case."""
    given = text_at(profile, field)
    return isinstance(given, str) and given.lower() == value.lower()


def _most_pods(
    profile: Value, resource: StackResource, resources: Sequence[StackResource]
) -> int | Unknown | None:
    """Return how many pods a node of the pool may have: its own number, or AKS' default for the cluster's network."""
    own = whole_number(at(profile, "maxPods"))
    if own is not None:
        return own
    for cluster in clusters_of(resource, "azure-native", resources):
        network = at(cluster.props, "networkProfile")
        mode = text_at(network, "networkPluginMode")
        if _is(network, "networkPlugin", "azure") and mode is None:
            return _NODE_SUBNET_PODS
        if _is(network, "networkPlugin", "kubenet"):
            return _KUBENET_PODS
    return None


def _sizes(profile: Value) -> tuple[Sequence[Value], Limits]:
    """Return its sizes and limits: a pool of single machines lists several sizes, each with its number."""
    scale = at(profile, "virtualMachinesProfile", "scale")
    if scale is None:
        return [at(profile, "vmSize")], _limits(profile)
    groups = items_at(scale, "manual")
    listed = [UNKNOWN] if groups is UNKNOWN else groups
    counts = [count(at(each, "count")) for each in listed]
    known = [each for each in counts if isinstance(each, int)]
    nodes = sum(known) if len(known) == len(counts) else UNKNOWN
    return [at(each, "size") for each in listed], Limits(nodes=nodes, set_by="virtualMachinesProfile.scale")


@cache
def _spellings() -> Mapping[str, str]:
    return {name.lower(): name for name in machine_catalogue("azure")}


def _as_listed(size: str) -> str:
    """Return a size as the table of machines spells it: Azure accepts it in any case."""
    return _spellings().get(size.lower(), size)


def _with_most_pods(
    most: int | Unknown | None, machines: tuple[MachineCapacity, ...] | Unknown
) -> tuple[MachineCapacity, ...] | Unknown:
    """Return the machines with this number of pods on a node; without one, with that of an overlay network."""
    if machines is UNKNOWN or not isinstance(most, int):
        return machines
    return tuple(replace(machine, max_pods=most) for machine in machines)


def _labels(profile: Value, *, is_spot: bool) -> Mapping[str, LabelFact] | Unknown:
    known = labels_at(profile, "nodeLabels")
    if known is UNKNOWN or not is_spot:
        return known
    return {**known, AKS_SCALE_SET_PRIORITY: AKS_SPOT_VALUE}


def _taints(profile: Value, *, is_spot: bool) -> tuple[Taint, ...] | Unknown:
    listed = at(profile, "nodeTaints")
    if listed is UNKNOWN:
        return UNKNOWN
    known = known_taints([_taint(each) for each in listed] if is_list(listed) else [])
    # AKS adds its own taint to the nodes of every spot scale set.
    return known if known is UNKNOWN or not is_spot or AKS_SPOT in known else (*known, AKS_SPOT)


def _taint(value: Value) -> Taint | Unknown | None:
    """Return a taint as AKS spells it: `key=value:Effect`."""
    if not isinstance(value, str):
        return UNKNOWN if value is UNKNOWN else None
    pair, _, effect = value.rpartition(":")
    key, _, given = pair.partition("=")
    return Taint(key=key, value=given, effect=effect) if key and effect else None


def _limits(profile: Value) -> Limits:
    scales = at(profile, "enableAutoScaling")
    if scales is UNKNOWN:
        return Limits(nodes=UNKNOWN)
    if scales is True:
        return Limits(nodes=count(at(profile, "maxCount")), set_by="maxCount")
    nodes = count(at(profile, "count"))
    return Limits(nodes=_DEFAULT_COUNT if nodes is None else nodes, set_by="count")


def _least_priority(profile: Value) -> int | None:
    """Return the least priority of pods for which it gets its first nodes."""
    scales = at(profile, "enableAutoScaling") is True
    return LEAST_PRIORITY if scales and not at(profile, "minCount") else None
