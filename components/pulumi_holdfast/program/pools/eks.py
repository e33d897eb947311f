"""Reads the pools of EKS that no NodePool declares: managed node groups, and the built-in pools of Auto Mode.

What a launch template sets is not read: a group that names one is not judged, and no rule reads who adds its nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import ON_DEMAND, POOL, SPOT
from pulumi_holdfast.ladder.reachability.facts import Limits, PoolFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.taints import Taint
from pulumi_holdfast.program.fields import unread
from pulumi_holdfast.program.pools.admission import tolerations_for
from pulumi_holdfast.program.pools.pool import (
    NO_DRIVER,
    WINDOWS,
    DeclaredPool,
    Machines,
    known_taints,
    machines_named,
    taint_of,
)
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    count,
    items_at,
    known_items,
    labels_at,
    of_type,
    once,
    text_at,
    texts_at,
)

NODE_GROUP: Final = "aws:eks/nodeGroup:NodeGroup"
_CLUSTER: Final = "aws:eks/cluster:Cluster"

#: EKS' machine type for node groups that set neither a type nor a launch template.
_DEFAULT_MACHINE_TYPE: Final = "t3.medium"
#: In the names of EKS' images with GPU drivers, and of those of which EKS knows nothing.
_DRIVERS: Final = ("GPU", "NVIDIA", "CUSTOM")
_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
}
_CAPACITY_TYPES: Final = {"SPOT": SPOT, "ON_DEMAND": ON_DEMAND, "CAPACITY_BLOCK": "reserved"}
#: The built-in pools of Auto Mode, which make on-demand CPU machines, and their taints.
_BUILT_IN: Final = {
    "general-purpose": (),
    "system": (Taint(key="CriticalAddonsOnly", value="", effect="NoSchedule"),),
}


@once
def eks_pools(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """Return the pools of the stack's node groups, and the built-in ones of its clusters in Auto Mode."""
    groups = [_node_group(each, resources) for each in of_type(resources, NODE_GROUP)]
    built_in = [pool for each in of_type(resources, _CLUSTER) for pool in _built_in(each)]
    return (*groups, *built_in)


def _node_group(group: StackResource, resources: Sequence[StackResource]) -> DeclaredPool:
    props = group.props
    label, declared = text_at(props, "labels", POOL), text_at(props, "nodeGroupName")
    name = declared if isinstance(declared, str) else group.logical_name
    given = at(props, "capacityType")
    kind = _CAPACITY_TYPES.get(given, ON_DEMAND) if isinstance(given, str) else ON_DEMAND
    image = str(text_at(props, "amiType") or "")
    machines = _machines(group)
    taints = items_at(props, "taints")
    kinds = frozenset({SPOT, ON_DEMAND} if given is UNKNOWN else {kind})
    limits = Limits(nodes=count(at(props, "scalingConfig", "maxSize")), set_by="scalingConfig.maxSize")
    return DeclaredPool(
        resource=group,
        profile=group.props,
        provisioner=Provisioner.EKS,
        label=label,
        node_pool=name,
        title=f"node group {name!r}",
        labels_path="labels",
        taints_path="taints",
        no_schedule="NO_SCHEDULE",
        facts=PoolFacts(
            name=label if isinstance(label, str) else group.logical_name,
            title=f"node group {name!r}",
            capacity_types=kinds,
            is_decided=given is not UNKNOWN,
            labels=labels_at(props, "labels"),
            taints=UNKNOWN if taints is UNKNOWN else known_taints([_taint(each) for each in taints]),
            machines=machines.capacities,
            unknown_machine_types=machines.unknown_types,
            planned_as=_planned_as(group),
            limits=limits,
            unmodeled=(*((WINDOWS,) if image.startswith("WINDOWS") else ()), *unread(group)),
            unmodeled_gpus=() if not image or any(each in image for each in _DRIVERS) else (NO_DRIVER,),
            added_tolerations=tolerations_for(label, Provisioner.EKS, resources),
        ),
    )


def _machines(group: StackResource) -> Machines:
    types = texts_at(group.props, "instanceTypes")
    if not types and at(group.props, "launchTemplate") is not None:
        return Machines(capacities=UNKNOWN)
    found = machines_named(types or [_DEFAULT_MACHINE_TYPE], "aws", Provisioner.EKS)
    if found.capacities is UNKNOWN:
        return found
    return replace(found, capacities=tuple(each.with_device_plugins() for each in found.capacities))


def is_fixed(group: StackResource) -> bool:
    """Whether a node group always has all the nodes that it may have, so that nothing has to add any."""
    scaling = at(group.props, "scalingConfig")
    least, most = (count(at(scaling, field)) for field in ("minSize", "maxSize"))
    return isinstance(least, int) and least > 0 and least == most


def _planned_as(group: StackResource) -> str:
    """Return the type that Cluster Autoscaler plans a group of several types with: the first, while it has no nodes.

    kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/aws_wrapper.go.
    """
    types = known_items(group.props, "instanceTypes")
    return types[0] if len(types) > 1 and isinstance(types[0], str) else ""


def _taint(value: Value) -> Taint | Unknown | None:
    taint = taint_of(value)
    return (
        replace(taint, effect=_EFFECTS.get(taint.effect, taint.effect)) if isinstance(taint, Taint) else taint
    )


def _built_in(cluster: StackResource) -> Iterator[DeclaredPool]:
    if at(cluster.props, "computeConfig", "enabled") is not True:
        return
    names = texts_at(cluster.props, "computeConfig", "nodePools")
    for name in sorted(names) if isinstance(names, frozenset) else ():
        if name in _BUILT_IN:
            title = f"built-in pool {name!r} of Auto Mode"
            yield DeclaredPool(
                resource=cluster,
                profile={},
                provisioner=Provisioner.EKS,
                label=None,
                node_pool=name,
                title=title,
                labels_path="",
                taints_path="",
                facts=PoolFacts(
                    name=name,
                    title=title,
                    capacity_types=frozenset({ON_DEMAND}),
                    taints=_BUILT_IN[name],
                    machines=UNKNOWN,
                ),
                is_for_jobs=False,
            )
