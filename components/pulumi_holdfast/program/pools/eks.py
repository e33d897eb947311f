"""Reads the pools of EKS that no NodePool declares: managed node groups, and the built-in pools of Auto Mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import ON_DEMAND, POOL, SPOT
from pulumi_holdfast.ladder.machines import is_sold_in, regions
from pulumi_holdfast.ladder.reachability.facts import Limits, PoolFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.taints import Taint
from pulumi_holdfast.program.fields import unread
from pulumi_holdfast.program.namespaces.admission import tolerations_for
from pulumi_holdfast.program.nodes.ec2_quotas import beyond_quotas
from pulumi_holdfast.program.nodes.egress import closed_on_ec2
from pulumi_holdfast.program.nodes.node_roles import missing_rights, role_of_group
from pulumi_holdfast.program.pools.cluster_autoscaler import never_scaled
from pulumi_holdfast.program.pools.node_classes import open_user_data
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
_SUBNET: Final = "aws:ec2/subnet:Subnet"
_LAUNCH_TEMPLATE: Final = "aws:ec2/launchTemplate:LaunchTemplate"
#: The network interfaces that are fabric adapters: with an address of their own, and without.
_ADAPTERS: Final = frozenset({"efa", "efa-only"})

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
    machines, subnets = _machines(group, resources), _subnets(group, resources)
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
            unmodeled=(
                *((WINDOWS,) if image.startswith("WINDOWS") else ()),
                *unread(group),
                *_unread_template(group, resources),
                *closed_on_ec2(subnets, resources),
                *_unsold(machines, subnets),
                *never_scaled(group, resources),
                *beyond_quotas(machines.capacities, kinds, limits, group, resources),
                *missing_rights(role_of_group(group, resources), resources),
            ),
            unmodeled_gpus=() if not image or any(each in image for each in _DRIVERS) else (NO_DRIVER,),
            added_tolerations=tolerations_for(label, Provisioner.EKS, resources),
        ),
    )


def _subnets(group: StackResource, resources: Sequence[StackResource]) -> list[StackResource]:
    """Return the subnets of the program that a node group has its machines in."""
    referred = group.refers_to.get("subnetIds", ())
    return [each for each in of_type(resources, _SUBNET) if each.urn in referred]


def _machines(group: StackResource, resources: Sequence[StackResource]) -> Machines:
    types = texts_at(group.props, "instanceTypes")
    template = _launch_template(group, resources)
    if not types and types is not UNKNOWN and template is not None:
        types = _type_of(template)
    # Only a launch template attaches fabric adapters.
    efa = False if template is None else _attaches_adapters(template)
    found = machines_named(types or [_DEFAULT_MACHINE_TYPE], "aws", Provisioner.EKS, efa=efa)
    if found.capacities is UNKNOWN:
        return found
    return replace(found, capacities=tuple(each.with_device_plugins() for each in found.capacities))


def _planned_as(group: StackResource) -> str:
    """Return the type that Cluster Autoscaler plans a group of several types with: the first, while it has no nodes.

    kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/aws_wrapper.go.
    """
    types = known_items(group.props, "instanceTypes")
    return types[0] if len(types) > 1 and isinstance(types[0], str) else ""


def _unsold(machines: Machines, subnets: Sequence[StackResource]) -> Iterator[str]:
    """Yield that the region of its subnets has none of its machine types, by the table of machines."""
    zones = {text_at(each.props, "availabilityZone") for each in subnets}
    there = {str(zone)[:-1] for zone in zones} & regions("aws")
    names = [each.name for each in (() if machines.capacities is UNKNOWN else machines.capacities)]
    if names and there and not any(is_sold_in(name, region) for name in names for region in there):
        yield f"{', '.join(sorted(there))} does not have {' or '.join(names)}, by the table of machines"


def _launch_template(
    group: StackResource, resources: Sequence[StackResource]
) -> StackResource | Unknown | None:
    """Return the launch template of a node group; UNKNOWN if the program does not show it, None if it has none."""
    named = at(group.props, "launchTemplate")
    if named is None:
        return None
    referred = group.refers_to.get("launchTemplate", ())
    names = {text_at(named, key) for key in ("id", "name")} - {None, UNKNOWN}
    return next(
        (
            each
            for each in of_type(resources, _LAUNCH_TEMPLATE)
            if each.urn in referred or {text_at(each.props, key) for key in ("id", "name")} & names
        ),
        UNKNOWN,
    )


def _unread_template(group: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield what the launch template of a node group sets that is not judged."""
    template = _launch_template(group, resources)
    if template is UNKNOWN:
        yield "what its launch template sets is not known: this program does not make it"
    elif template is not None:
        yield from unread(template)
        yield from open_user_data(template, at(template.declared, "userData"))


def _type_of(template: StackResource | Unknown) -> frozenset[str] | Unknown:
    """Return the machine type of a launch template; EKS' default if it names none."""
    named = UNKNOWN if template is UNKNOWN else text_at(template.props, "instanceType")
    if named is None and template is not UNKNOWN and at(template.props, "instanceRequirements") is not None:
        return UNKNOWN
    return UNKNOWN if named is UNKNOWN else frozenset({named or _DEFAULT_MACHINE_TYPE})


def _attaches_adapters(template: StackResource | Unknown) -> bool | Unknown:
    """Return whether a launch template attaches fabric adapters to its machines."""
    interfaces = UNKNOWN if template is UNKNOWN else items_at(template.props, "networkInterfaces")
    if interfaces is UNKNOWN:
        return UNKNOWN
    kinds = {text_at(each, "interfaceType") for each in interfaces}
    return True if kinds & _ADAPTERS else UNKNOWN if UNKNOWN in kinds else False


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
