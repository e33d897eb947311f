"""Pools as AKS' agent pools declare them: scale sets, each of one VM size, with what AKS adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.declared.admission import tolerations_for
from holdfast.policies.declared.amounts import whole
from holdfast.policies.declared.label_values import label_values
from holdfast.policies.declared.machines import machines_named
from holdfast.policies.declared.pool import DeclaredPool
from holdfast.policies.known_values import UNKNOWN, Unknown, Value, at, is_list, text_at
from holdfast.scheduling.labels import AKS_SCALE_SET_PRIORITY, AKS_SPOT_VALUE, ON_DEMAND, POOL, SPOT
from holdfast.scheduling.reachability.facts import Limits, PoolFacts
from holdfast.scheduling.reachability.machine_capacity import Provisioner
from holdfast.scheduling.taints import Taint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.scheduling.reachability.facts import LabelValue

AGENT_POOL: Final = ":AgentPool"
_PACKAGE: Final = "azure-native:containerservice"

#: AKS puts it on the nodes of every spot scale set.
_SPOT_TAINT: Final = Taint(key=AKS_SCALE_SET_PRIORITY, value=AKS_SPOT_VALUE)


def is_agent_pool(type_token: str) -> bool:
    """Whether the type is an agent pool, of any API version."""
    return type_token.startswith(_PACKAGE) and type_token.endswith(AGENT_POOL)


def aks_declared(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """The pools of the stack's agent pools; system pools are none that jobs select."""
    return tuple(
        _declared(each, resources)
        for each in resources
        if is_agent_pool(each.type) and at(each.props, "mode") != "System"
    )


def _declared(agent_pool: StackResource, resources: Sequence[StackResource]) -> DeclaredPool:
    label = text_at(agent_pool.props, "nodeLabels", POOL)
    declared = text_at(agent_pool.props, "agentPoolName")
    maker_name = declared if isinstance(declared, str) else agent_pool.logical_name
    title = f"agent pool {maker_name!r}"
    priority = text_at(agent_pool.props, "scaleSetPriority")
    is_spot = priority == "Spot"
    size = text_at(agent_pool.props, "vmSize")
    machines = machines_named(size if size is UNKNOWN else [size or ""], "azure", Provisioner.AKS)
    return DeclaredPool(
        resource=agent_pool,
        provisioner=Provisioner.AKS,
        label=label,
        maker_name=maker_name,
        title=title,
        labels_path="nodeLabels",
        taints_path="nodeTaints",
        facts=PoolFacts(
            name=label if isinstance(label, str) else agent_pool.logical_name,
            title=title,
            capacity_types=frozenset({SPOT} if is_spot else {ON_DEMAND}),
            is_decided=priority is not UNKNOWN,
            labels=_labels(agent_pool, is_spot=is_spot),
            taints=_taints(agent_pool, is_spot=is_spot),
            machines=machines.rooms,
            unknown_machine_types=machines.unread,
            limits=Limits(nodes=_most_nodes(agent_pool)),
            zones=_zones(agent_pool),
            added_tolerations=tolerations_for(label, resources),
        ),
    )


def _labels(agent_pool: StackResource, *, is_spot: bool) -> Mapping[str, LabelValue] | Unknown:
    known = label_values(at(agent_pool.props, "nodeLabels"))
    if known is UNKNOWN or not is_spot:
        return known
    return {**known, AKS_SCALE_SET_PRIORITY: AKS_SPOT_VALUE}


def _taints(agent_pool: StackResource, *, is_spot: bool) -> tuple[Taint, ...] | Unknown:
    listed = at(agent_pool.props, "nodeTaints")
    if listed is UNKNOWN:
        return UNKNOWN
    found = [_taint(each) for each in listed] if is_list(listed) else []
    if UNKNOWN in found:
        return UNKNOWN
    known = tuple(taint for taint in found if isinstance(taint, Taint))
    return (*known, _SPOT_TAINT) if is_spot and _SPOT_TAINT not in known else known


def _taint(value: Value) -> Taint | Unknown | None:
    """`key=value:Effect`, as AKS spells a taint."""
    if not isinstance(value, str):
        return UNKNOWN if value is UNKNOWN else None
    pair, _, effect = value.rpartition(":")
    key, _, given = pair.partition("=")
    return Taint(key=key, value=given, effect=effect) if key and effect else None


def _most_nodes(agent_pool: StackResource) -> int | Unknown | None:
    scales = at(agent_pool.props, "enableAutoScaling")
    if scales is UNKNOWN:
        return UNKNOWN
    return whole(at(agent_pool.props, "maxCount" if scales is True else "count"))


def _zones(agent_pool: StackResource) -> frozenset[str] | Unknown | None:
    listed = at(agent_pool.props, "availabilityZones")
    if listed is UNKNOWN or (is_list(listed) and UNKNOWN in listed):
        return UNKNOWN
    return frozenset(each for each in listed if isinstance(each, str)) if is_list(listed) else None
