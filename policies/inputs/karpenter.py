"""Reads Karpenter's NodePools, on AWS, on Azure and simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.inputs.admission import tolerations_for
from holdfast.policies.inputs.pool import DeclaredPool, Machines, known_taints, machines_named, taint_of
from holdfast.policies.resources import (
    Value,
    at,
    count,
    cpu_millis,
    is_list,
    items_at,
    labels_at,
    memory_mib,
    once,
    text_at,
)
from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import (
    CAPACITY_TYPE,
    EFA_NODE,
    EFA_NODE_VALUE,
    GPU_RESOURCE,
    INSTANCE_TYPE,
    ON_DEMAND,
    POOL,
    SPOT,
    ZONE,
)
from holdfast.scheduling.reachability.facts import Limits, PoolFacts
from holdfast.scheduling.reachability.machine_capacity import Provisioner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.policies.resources import StackResource
    from holdfast.scheduling.reachability.facts import LabelValue
    from holdfast.scheduling.taints import Taint

#: Karpenter may launch any of these if a NodePool requires none: a NodePool without a capacity type is not on-demand.
CAPACITY_TYPES: Final = frozenset({ON_DEMAND, SPOT, "reserved"})

#: The API group of a NodePool's node class → what makes its nodes, and on which cloud.
_NODE_CLASSES: Final = {
    "karpenter.k8s.aws": (Provisioner.EKS, "aws"),
    "karpenter.azure.com": (Provisioner.NAP, "azure"),
    "karpenter.kwok.sh": (Provisioner.LOCAL, "local"),
}


def is_node_pool(type_token: str) -> bool:
    """Whether the type is a NodePool of any API version."""
    return type_token.startswith("kubernetes:karpenter.sh/") and type_token.endswith(":NodePool")


@once
def node_pools(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    """Return the stack's NodePools."""
    return tuple(resource for resource in resources if is_node_pool(resource.type))


def karpenter_pools(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """Return the pools of the stack's NodePools."""
    return tuple(_pool(node_pool, resources) for node_pool in node_pools(resources))


def _pool(node_pool: StackResource, resources: Sequence[StackResource]) -> DeclaredPool:
    group = text_at(node_pool.props, "spec", "template", "spec", "nodeClassRef", "group")
    provisioner, cloud = _NODE_CLASSES.get(group if isinstance(group, str) else "", (Provisioner.EKS, ""))
    label, name = pool_label(node_pool), name_of(node_pool)
    kinds, decided = capacity_types(node_pool)
    adapters = text_at(node_pool.props, "spec", "template", "metadata", "labels", EFA_NODE) == EFA_NODE_VALUE
    machines = machines_named(required(node_pool, INSTANCE_TYPE), cloud, provisioner, efa=adapters)
    return DeclaredPool(
        resource=node_pool,
        provisioner=provisioner,
        label=label,
        node_pool=name,
        title=f"NodePool {name!r}",
        labels_path="spec.template.metadata.labels",
        taints_path="spec.template.spec.taints",
        facts=PoolFacts(
            name=label if isinstance(label, str) else name,
            title=f"NodePool {name!r}",
            capacity_types=kinds,
            is_decided=decided,
            labels=_labels(node_pool),
            taints=_taints(node_pool),
            machines=machines.capacities,
            unknown_machine_types=machines.unknown_types,
            limits=_limits(node_pool, machines),
            zones=required(node_pool, ZONE),
            added_tolerations=tolerations_for(label, resources),
        ),
    )


def name_of(node_pool: StackResource) -> str:
    """Return its name in the cluster; its resource's name if that is not known."""
    declared = text_at(node_pool.props, "metadata", "name")
    return declared if isinstance(declared, str) else node_pool.logical_name


def pool_label(node_pool: StackResource) -> str | Unknown | None:
    """Return the pool label of its nodes: set as a label, or as a requirement with one value."""
    label = text_at(node_pool.props, "spec", "template", "metadata", "labels", POOL)
    if label is not None:
        return label
    for requirement in requirements(node_pool):
        key = at(requirement, "key")
        values = items_at(requirement, "values")
        if requirement is UNKNOWN or key is UNKNOWN or (key == POOL and values is UNKNOWN):
            return UNKNOWN
        if key == POOL and at(requirement, "operator") == "In" and values is not UNKNOWN and len(values) == 1:
            only = values[0]
            return only if only is UNKNOWN or isinstance(only, str) else None
    return None


def capacity_types(node_pool: StackResource) -> tuple[frozenset[str], bool]:
    """Return the capacity types that its requirements allow, and whether all requirements are known."""
    allowed = CAPACITY_TYPES
    decided = True
    for requirement in requirements(node_pool):
        if at(requirement, "key") == CAPACITY_TYPE:
            narrowed = _narrow(allowed, requirement)
            decided = decided and narrowed is not UNKNOWN
            allowed = allowed if narrowed is UNKNOWN else narrowed
        elif at(requirement, "key") is UNKNOWN:
            decided = False
    return allowed, decided


def may_buy_spot(node_pool: StackResource) -> bool:
    """Whether its requirements certainly allow spot."""
    kinds, decided = capacity_types(node_pool)
    return decided and SPOT in kinds


def is_on_aws(node_pool: StackResource) -> bool:
    """Whether its node class is that of Karpenter's AWS provider."""
    return at(node_pool.props, "spec", "template", "spec", "nodeClassRef", "group") == "karpenter.k8s.aws"


def requirements(node_pool: StackResource) -> Iterator[Value]:
    """Yield its requirements; a label for the capacity type counts as one, as it does for Karpenter."""
    label = at(node_pool.props, "spec", "template", "metadata", "labels", CAPACITY_TYPE)
    if label is UNKNOWN:
        yield UNKNOWN
    elif label is not None:
        yield {"key": CAPACITY_TYPE, "operator": "In", "values": [label]}
    listed = items_at(node_pool.props, "spec", "template", "spec", "requirements")
    if listed is UNKNOWN:
        yield UNKNOWN
    else:
        yield from listed


def _narrow(allowed: frozenset[str], requirement: Value) -> frozenset[str] | Unknown:
    """Return what one requirement on the capacity type leaves of `allowed`."""
    operator = at(requirement, "operator")
    values = items_at(requirement, "values")
    if operator is UNKNOWN or values is UNKNOWN or UNKNOWN in values:
        return UNKNOWN
    named = frozenset(value for value in values if isinstance(value, str))
    match operator:
        case "In":
            return allowed & named
        case "NotIn":
            return allowed - named
        case "DoesNotExist":
            return frozenset()
        case _:
            return allowed


def required(node_pool: StackResource, key: str) -> frozenset[str] | Unknown | None:
    """Return the values of a label that its requirements allow (`In`); None if they allow any."""
    allowed: frozenset[str] | None = None
    for requirement in requirements(node_pool):
        name = at(requirement, "key")
        if name is UNKNOWN:
            return UNKNOWN
        if name == key and at(requirement, "operator") == "In":
            values = items_at(requirement, "values")
            if values is UNKNOWN or UNKNOWN in values:
                return UNKNOWN
            these = frozenset(value for value in values if isinstance(value, str))
            allowed = these if allowed is None else allowed & these
    return allowed


def _taints(node_pool: StackResource) -> tuple[Taint, ...] | Unknown:
    """Return the taints of its nodes; startup taints are removed before pods are scheduled."""
    listed = items_at(node_pool.props, "spec", "template", "spec", "taints")
    return UNKNOWN if listed is UNKNOWN else known_taints([taint_of(each) for each in listed])


def _labels(node_pool: StackResource) -> Mapping[str, LabelValue] | Unknown:
    """Return the labels of its nodes: those it sets, and requirements with one value.

    A label whose requirement allows several values is UNKNOWN: Karpenter sets the value that pods select.
    """
    declared = labels_at(node_pool.props, "spec", "template", "metadata", "labels")
    if declared is UNKNOWN:
        return UNKNOWN
    required_of: dict[str, LabelValue] = {}
    for requirement in requirements(node_pool):
        key = at(requirement, "key")
        if isinstance(key, str) and at(requirement, "operator") != "DoesNotExist":
            value = _only_value(requirement)
            required_of[key] = value if key not in required_of else UNKNOWN
    return {**required_of, **declared}


def _only_value(requirement: Value) -> LabelValue:
    values = items_at(requirement, "values")
    if at(requirement, "operator") != "In" or not is_list(values) or len(values) != 1:
        return UNKNOWN
    only = values[0]
    return only if isinstance(only, str) else UNKNOWN


def _limits(node_pool: StackResource, machines: Machines) -> Limits:
    limits = at(node_pool.props, "spec", "limits")
    if limits is UNKNOWN:
        return Limits(nodes=UNKNOWN)
    gpus = count(at(limits, GPU_RESOURCE))
    return Limits(
        nodes=count(at(limits, "nodes")),
        cpu_millis=cpu_millis(at(limits, "cpu")),
        memory_mib=memory_mib(at(limits, "memory")),
        gpus=gpus if machines.have_gpus else None,
    )
