"""Reads GKE's node pools, with what GKE adds to their nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holdfast.policies.inputs.admission import tolerations_for
from holdfast.policies.inputs.pool import DeclaredPool, Machines, known_taints, machines_named, taint_of
from holdfast.policies.resources import (
    Value,
    at,
    count,
    is_object,
    items_at,
    labels_at,
    once,
    text_at,
    texts_at,
)
from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import (
    COMPUTE_CLASS,
    GKE_PROVISIONING,
    GKE_SPOT,
    GKE_SPOT_VALUE,
    GPU_RESOURCE,
    ON_DEMAND,
    POOL,
    SPOT,
)
from holdfast.scheduling.machines import machine_catalogue, with_attached
from holdfast.scheduling.reachability.facts import AddedToleration, Limits, PoolFacts
from holdfast.scheduling.reachability.machine_capacity import Provisioner, machine_capacity
from holdfast.scheduling.taints import GPU, Taint, Toleration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.policies.resources import StackResource
    from holdfast.scheduling.reachability.affinity import LabelFact

NODE_POOL: Final = "gcp:container/nodePool:NodePool"

_CLUSTER: Final = "gcp:container/cluster:Cluster"
_DEFAULT_POOL: Final = "default-pool"

#: GKE ends such nodes without asking their pods: at any time, after a day at the latest, or after a week.
_PREEMPTIBLE: Final = {"spot": SPOT, "preemptible": SPOT, "flexStart": "flex-start"}

_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
# GKE adds a toleration to pods that request GPUs (ExtendedResourceToleration).
_GPU_TOLERATION: Final = AddedToleration(toleration=Toleration(key=GPU_RESOURCE), for_gpu_pods=True)
# GKE's machine type for node pools that set none.
_DEFAULT_MACHINE_TYPE: Final = "e2-medium"


@once
def gke_pools(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """Return the pools of the stack's GKE node pools, and those inside its clusters."""
    own = [_pool(each, resources) for each in resources if each.type == NODE_POOL]
    inline = [pool for each in resources if each.type == _CLUSTER for pool in _inline(each, resources)]
    return (*own, *inline)


def _inline(cluster: StackResource, resources: Sequence[StackResource]) -> Iterator[DeclaredPool]:
    """Yield the pools that a cluster declares itself, and the default pool that it is created with."""
    listed = items_at(cluster.props, "nodePools")
    profiles = [
        (f"nodePools[{index}].", each) for index, each in enumerate(() if listed is UNKNOWN else listed)
    ]
    removed = at(cluster.props, "removeDefaultNodePool"), at(cluster.props, "enableAutopilot")
    if listed is not UNKNOWN and not profiles and True not in removed and UNKNOWN not in removed:
        counted = {"nodeCount": at(cluster.props, "initialNodeCount")}
        default = {key: at(cluster.props, key) for key in ("nodeConfig", "nodeLocations")}
        profiles.append(("", {"name": _DEFAULT_POOL, **default, **counted}))
    for where, profile in profiles:
        if is_object(profile):
            pool = _pool(replace(cluster, props=profile), resources)
            yield replace(
                pool,
                resource=cluster,
                labels_path=f"{where}nodeConfig.labels",
                taints_path=f"{where}nodeConfig.taints",
            )


def _pool(node_pool: StackResource, resources: Sequence[StackResource]) -> DeclaredPool:
    label = text_at(node_pool.props, "nodeConfig", "labels", POOL)
    declared = text_at(node_pool.props, "name")
    name = declared if isinstance(declared, str) else node_pool.logical_name
    kinds, decided = _capacity_types(node_pool)
    machines = _machines(node_pool)
    return DeclaredPool(
        resource=node_pool,
        provisioner=Provisioner.GKE,
        label=label,
        node_pool=name,
        title=f"node pool {name!r}",
        labels_path="nodeConfig.labels",
        taints_path="nodeConfig.taints",
        facts=PoolFacts(
            name=label if isinstance(label, str) else node_pool.logical_name,
            title=f"node pool {name!r}",
            capacity_types=kinds,
            is_decided=decided,
            labels=_labels(node_pool, is_spot=kinds == frozenset({SPOT})),
            taints=_taints(node_pool, machines),
            machines=machines.capacities,
            unknown_machine_types=machines.unknown_types,
            limits=Limits(nodes=_max_nodes(node_pool)),
            zones=texts_at(node_pool.props, "nodeLocations"),
            added_tolerations=_tolerations(node_pool, label, resources),
        ),
    )


def _capacity_types(node_pool: StackResource) -> tuple[frozenset[str], bool]:
    """Return the capacity types that its nodes may have, and whether it is known which of them they have."""
    given = {field: at(node_pool.props, "nodeConfig", field) for field in _PREEMPTIBLE}
    certain = frozenset(_PREEMPTIBLE[field] for field, value in given.items() if value is True)
    if certain:
        return certain, True
    unknown = frozenset(_PREEMPTIBLE[field] for field, value in given.items() if value is UNKNOWN)
    return frozenset({ON_DEMAND}) | unknown, not unknown


def _machines(node_pool: StackResource) -> Machines:
    name = text_at(node_pool.props, "nodeConfig", "machineType")
    attached = items_at(node_pool.props, "nodeConfig", "guestAccelerators")
    if name is UNKNOWN or attached is UNKNOWN or UNKNOWN in attached:
        return Machines(capacities=UNKNOWN)
    found = machines_named([name or _DEFAULT_MACHINE_TYPE], "gcp", Provisioner.GKE)
    kind = text_at(attached[0], "type") if attached else None
    gpus = count(at(attached[0], "count")) if attached else None
    machine = machine_catalogue("gcp").get(name or "")
    if machine is None or machine.gpus or not isinstance(kind, str) or not isinstance(gpus, int):
        return found
    return Machines(capacities=(machine_capacity(with_attached(machine, kind, gpus), Provisioner.GKE),))


def _labels(node_pool: StackResource, *, is_spot: bool) -> Mapping[str, LabelFact] | Unknown:
    known = labels_at(node_pool.props, "nodeConfig", "labels")
    if known is UNKNOWN or not is_spot:
        return known
    return {**known, GKE_SPOT: GKE_SPOT_VALUE, GKE_PROVISIONING: SPOT}


def _taints(node_pool: StackResource, machines: Machines) -> tuple[Taint, ...] | Unknown:
    listed = items_at(node_pool.props, "nodeConfig", "taints")
    if listed is UNKNOWN or machines.capacities is UNKNOWN:
        return UNKNOWN
    known = known_taints([_taint(each) for each in listed])
    if known is UNKNOWN or not machines.have_gpus:
        return known
    # GKE taints nodes with GPUs by itself, unless the pool has a taint with that key.
    return known if any(each.key == GPU.key for each in known) else (*known, GPU)


def _taint(value: Value) -> Taint | Unknown | None:
    taint = taint_of(value)
    return (
        replace(taint, effect=_EFFECTS.get(taint.effect, taint.effect)) if isinstance(taint, Taint) else taint
    )


def _max_nodes(node_pool: StackResource) -> int | Unknown | None:
    """Return how many nodes it may have in all its zones; None: any number."""
    scaling = at(node_pool.props, "autoscaling")
    if scaling is UNKNOWN:
        return UNKNOWN
    zones = texts_at(node_pool.props, "nodeLocations")
    zone_count = 1 if zones is None else zones if zones is UNKNOWN else len(zones)
    if scaling is None:
        return _times(count(at(node_pool.props, "nodeCount")), zone_count)
    total = count(at(scaling, "totalMaxNodeCount"))
    return total if total is not None else _times(count(at(scaling, "maxNodeCount")), zone_count)


def _times(nodes: int | Unknown | None, zones: int | Unknown) -> int | Unknown | None:
    return nodes * zones if isinstance(nodes, int) and isinstance(zones, int) else UNKNOWN


def _tolerations(
    node_pool: StackResource, label: str | Unknown | None, resources: Sequence[StackResource]
) -> tuple[AddedToleration, ...] | Unknown:
    added = tolerations_for(label, resources)
    if added is UNKNOWN:
        return UNKNOWN
    compute_class = text_at(node_pool.props, "nodeConfig", "labels", COMPUTE_CLASS)
    # GKE adds a toleration to pods that select a ComputeClass.
    by_class = (
        (AddedToleration(toleration=Toleration(key=COMPUTE_CLASS)),) if isinstance(compute_class, str) else ()
    )
    return (*added, _GPU_TOLERATION, *by_class)
