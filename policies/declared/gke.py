"""Pools as GKE's node pools declare them, with what GKE adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.declared.admission import tolerations_for
from holdfast.policies.declared.amounts import whole
from holdfast.policies.declared.label_values import label_values
from holdfast.policies.declared.machines import Machines, machines_named
from holdfast.policies.declared.pool import DeclaredPool
from holdfast.policies.gke_pools import NODE_POOL, capacity
from holdfast.policies.known_values import UNKNOWN, Unknown, Value, at, is_list, items_at, text_at
from holdfast.scheduling.labels import (
    COMPUTE_CLASS,
    GKE_PROVISIONING,
    GKE_SPOT,
    GKE_SPOT_VALUE,
    GPU_RESOURCE,
    POOL,
    SPOT,
)
from holdfast.scheduling.machines import machine_catalogue, with_attached
from holdfast.scheduling.reachability.facts import AddedToleration, Limits, PoolFacts
from holdfast.scheduling.reachability.machine_capacity import Provisioner, machine_capacity
from holdfast.scheduling.taints import GPU, Taint, Toleration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.scheduling.reachability.facts import LabelValue

_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
# GKE lets pods that request GPUs in by itself (ExtendedResourceToleration).
_LET_IN_BY_GKE: Final = AddedToleration(toleration=Toleration(key=GPU_RESOURCE), for_gpu_pods=True)


def gke_declared(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """The pools of the stack's node pools of GKE."""
    return tuple(_declared(each, resources) for each in resources if each.type == NODE_POOL)


def _declared(node_pool: StackResource, resources: Sequence[StackResource]) -> DeclaredPool:
    label = text_at(node_pool.props, "nodeConfig", "labels", POOL)
    declared = text_at(node_pool.props, "name")
    maker_name = declared if isinstance(declared, str) else node_pool.logical_name
    title = f"node pool {maker_name!r}"
    kinds, decided = capacity(node_pool)
    machines = _machines(node_pool)
    return DeclaredPool(
        resource=node_pool,
        provisioner=Provisioner.GKE,
        label=label,
        maker_name=maker_name,
        title=title,
        labels_path="nodeConfig.labels",
        taints_path="nodeConfig.taints",
        facts=PoolFacts(
            name=label if isinstance(label, str) else node_pool.logical_name,
            title=title,
            capacity_types=kinds,
            is_decided=decided,
            labels=_labels(node_pool, is_spot=kinds == frozenset({SPOT})),
            taints=_taints(node_pool, machines),
            machines=machines.rooms,
            unknown_machine_types=machines.unread,
            limits=Limits(nodes=most_nodes(node_pool)),
            zones=_zones(node_pool),
            added_tolerations=_tolerations(node_pool, label, resources),
        ),
    )


def _machines(node_pool: StackResource) -> Machines:
    name = text_at(node_pool.props, "nodeConfig", "machineType")
    attached = items_at(node_pool.props, "nodeConfig", "guestAccelerators")
    if name is UNKNOWN or attached is UNKNOWN or UNKNOWN in attached:
        return Machines(rooms=UNKNOWN)
    # What GKE takes where nothing is said.
    found = machines_named([name or "e2-medium"], "gcp", Provisioner.GKE)
    kind = text_at(attached[0], "type") if attached else None
    count = whole(at(attached[0], "count")) if attached else None
    machine = machine_catalogue("gcp").get(name or "")
    if machine is None or machine.gpus or not isinstance(kind, str) or not isinstance(count, int):
        return found
    return Machines(rooms=(machine_capacity(with_attached(machine, kind, count), Provisioner.GKE),))


def _labels(node_pool: StackResource, *, is_spot: bool) -> Mapping[str, LabelValue] | Unknown:
    known = label_values(at(node_pool.props, "nodeConfig", "labels"))
    if known is UNKNOWN or not is_spot:
        return known
    return {**known, GKE_SPOT: GKE_SPOT_VALUE, GKE_PROVISIONING: SPOT}


def _taints(node_pool: StackResource, machines: Machines) -> tuple[Taint, ...] | Unknown:
    listed = items_at(node_pool.props, "nodeConfig", "taints")
    if listed is UNKNOWN or machines.rooms is UNKNOWN:
        return UNKNOWN
    found = [_taint(each) for each in listed]
    if UNKNOWN in found:
        return UNKNOWN
    known = tuple(taint for taint in found if isinstance(taint, Taint))
    # GKE taints nodes with GPUs by itself, and takes no second taint of that key.
    return (*known, GPU) if machines.have_gpus and all(each.key != GPU.key for each in known) else known


def _taint(value: Value) -> Taint | Unknown | None:
    key, given, effect = (at(value, part) for part in ("key", "value", "effect"))
    if value is UNKNOWN or UNKNOWN in (key, given, effect):
        return UNKNOWN
    if not isinstance(key, str) or not isinstance(effect, str):
        return None
    return Taint(key=key, value=given if isinstance(given, str) else "", effect=_EFFECTS.get(effect, effect))


def most_nodes(node_pool: StackResource) -> int | Unknown | None:
    """How many nodes it may have over all its zones, None without end."""
    scaling = at(node_pool.props, "autoscaling")
    if scaling is UNKNOWN:
        return UNKNOWN
    zones = _zones(node_pool)
    count = 1 if zones is None else zones if zones is UNKNOWN else len(zones)
    if scaling is None:
        return _times(whole(at(node_pool.props, "nodeCount")), count)
    total = whole(at(scaling, "totalMaxNodeCount"))
    return total if total is not None else _times(whole(at(scaling, "maxNodeCount")), count)


def _times(nodes: int | Unknown | None, zones: int | Unknown) -> int | Unknown | None:
    return nodes * zones if isinstance(nodes, int) and isinstance(zones, int) else UNKNOWN


def _zones(node_pool: StackResource) -> frozenset[str] | Unknown | None:
    """Its own zones; None for those of its cluster."""
    listed = at(node_pool.props, "nodeLocations")
    if listed is UNKNOWN or (is_list(listed) and UNKNOWN in listed):
        return UNKNOWN
    return frozenset(each for each in listed if isinstance(each, str)) if is_list(listed) else None


def _tolerations(
    node_pool: StackResource, label: str | Unknown | None, resources: Sequence[StackResource]
) -> tuple[AddedToleration, ...] | Unknown:
    added = tolerations_for(label, resources)
    if added is UNKNOWN:
        return UNKNOWN
    group = text_at(node_pool.props, "nodeConfig", "labels", COMPUTE_CLASS)
    # Who selects a ComputeClass is let in by GKE.
    by_class = (AddedToleration(toleration=Toleration(key=COMPUTE_CLASS)),) if isinstance(group, str) else ()
    return (*added, _LET_IN_BY_GKE, *by_class)
