"""Pools as Karpenter's NodePools declare them, on AWS, on Azure and simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.declared.admission import tolerations_for
from holdfast.policies.declared.amounts import cpu_millis, memory_mib, whole
from holdfast.policies.declared.label_values import label_values
from holdfast.policies.declared.machines import Machines, machines_named
from holdfast.policies.declared.pool import DeclaredPool
from holdfast.policies.karpenter_pools import capacity, pool_label, requirements
from holdfast.policies.known_values import UNKNOWN, Unknown, Value, at, is_list, items_at, text_at
from holdfast.policies.node_pools import name_of, node_pools, required, taints_of
from holdfast.scheduling.labels import GPU_RESOURCE, INSTANCE_TYPE, ZONE
from holdfast.scheduling.reachability.facts import Limits, PoolFacts
from holdfast.scheduling.reachability.machine_capacity import Provisioner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.scheduling.reachability.facts import LabelValue

#: The group of a NodePool's node class → who makes its nodes, and on which cloud.
_CLASSES: Final = {
    "karpenter.k8s.aws": (Provisioner.EKS, "aws"),
    "karpenter.azure.com": (Provisioner.NAP, "azure"),
    "karpenter.kwok.sh": (Provisioner.LOCAL, "local"),
}


def karpenter_declared(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """The pools of the stack's NodePools."""
    return tuple(_declared(node_pool, resources) for node_pool in node_pools(resources))


def _declared(node_pool: StackResource, resources: Sequence[StackResource]) -> DeclaredPool:
    group = text_at(node_pool.props, "spec", "template", "spec", "nodeClassRef", "group")
    provisioner, cloud = _CLASSES.get(group if isinstance(group, str) else "", (Provisioner.EKS, ""))
    label = pool_label(node_pool)
    kinds, decided = capacity(node_pool)
    machines = machines_named(required(node_pool, INSTANCE_TYPE), cloud, provisioner)
    return DeclaredPool(
        resource=node_pool,
        provisioner=provisioner,
        label=label,
        maker_name=name_of(node_pool),
        title=f"NodePool {name_of(node_pool)!r}",
        labels_path="spec.template.metadata.labels",
        taints_path="spec.template.spec.taints",
        facts=PoolFacts(
            name=label if isinstance(label, str) else name_of(node_pool),
            title=f"NodePool {name_of(node_pool)!r}",
            capacity_types=kinds,
            is_decided=decided,
            labels=_labels(node_pool),
            taints=taints_of(node_pool),
            machines=machines.rooms,
            unknown_machine_types=machines.unread,
            limits=_limits(node_pool, machines),
            zones=required(node_pool, ZONE),
            added_tolerations=tolerations_for(label, resources),
        ),
    )


def _labels(node_pool: StackResource) -> Mapping[str, LabelValue] | Unknown:
    """The labels its nodes have: those it sets, and requirements of one value.

    What a requirement leaves open is UNKNOWN: Karpenter gives a node whichever of the values its pods select.
    """
    declared = label_values(at(node_pool.props, "spec", "template", "metadata", "labels"))
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
    gpus = whole(at(limits, GPU_RESOURCE))
    return Limits(
        nodes=whole(at(limits, "nodes")),
        cpu_millis=cpu_millis(at(limits, "cpu")),
        memory_mib=memory_mib(at(limits, "memory")),
        gpus=gpus if machines.have_gpus else None,
    )
