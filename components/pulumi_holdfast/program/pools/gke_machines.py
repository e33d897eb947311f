"""Reads the machines of a GKE node pool: their type, and the GPUs that it brings or that are attached, divided and shared; and its zones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.machines import attachable_to, machine_catalogue, regions, with_attached, zones_of
from pulumi_holdfast.ladder.reachability.affinity import LabelFact
from pulumi_holdfast.ladder.reachability.facts import Limits
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner, machine_capacity
from pulumi_holdfast.program.clusters import clusters_of
from pulumi_holdfast.program.pools.pool import Machines, machines_named
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    count,
    items_at,
    text_at,
    texts_at,
    whole_number,
)

#: GPUs that GKE divides into partitions, and their memory.
_MEMORY_GB: Final[Mapping[str, int]] = {
    "nvidia-tesla-a100": 40,
    "nvidia-a100-80gb": 80,
    "nvidia-h100-80gb": 80,
    "nvidia-h200-141gb": 141,
    "nvidia-b200": 180,
    "nvidia-gb200": 186,
    "nvidia-rtx-pro-6000": 96,
}
_PARTITION: Final = re.compile(r"(?P<compute>[1-7])g\.(?P<memory>[0-9]{1,3})gb")
_COMPUTE_UNITS: Final = 7
_MEMORY_UNITS: Final = 8
_STRATEGIES: Final = {"TIME_SHARING": "time-sharing", "MPS": "mps"}

# GKE's machine type for node pools that set none.
_DEFAULT_MACHINE_TYPE: Final = "e2-medium"


def machines_of(node_pool: StackResource) -> Machines:
    """Return its machine type, with the GPUs that are attached to it."""
    name = text_at(node_pool.props, "nodeConfig", "machineType")
    attached = items_at(node_pool.props, "nodeConfig", "guestAccelerators")
    if name is UNKNOWN or attached is UNKNOWN or UNKNOWN in attached:
        return Machines(capacities=UNKNOWN)
    machine = machine_catalogue("gcp").get(name or _DEFAULT_MACHINE_TYPE)
    if machine is None or not attached:
        return machines_named([name or _DEFAULT_MACHINE_TYPE], "gcp", Provisioner.GKE)
    kind, gpus = text_at(attached[0], "type"), count(at(attached[0], "count"))
    if not machine.gpus and isinstance(kind, str) and isinstance(gpus, int):
        if gpus not in attachable_to(machine).get(kind, ()):
            return Machines(capacities=(), unknown_types=(f"{machine.name} with {gpus} {kind}",))
        machine = with_attached(machine, kind, gpus)
    clients = _clients_of_a_gpu(node_pool)
    if clients is UNKNOWN or (not machine.gpus and UNKNOWN in (kind, gpus)):
        return Machines(capacities=UNKNOWN)
    shared = replace(machine, gpus=machine.gpus * clients)
    return Machines(capacities=(machine_capacity(shared, Provisioner.GKE),))


def accelerator_of(node_pool: StackResource) -> Value:
    """Return the GPUs that it declares; None if it declares none."""
    attached = items_at(node_pool.props, "nodeConfig", "guestAccelerators")
    return attached[0] if attached is not UNKNOWN and attached else None


def _clients_of_a_gpu(node_pool: StackResource) -> int | Unknown:
    """Return as how many GPUs its nodes list each: one for each partition, and for each client that may share it."""
    size = text_at(accelerator_of(node_pool), "gpuPartitionSize")
    sharing = at(accelerator_of(node_pool), "gpuSharingConfig")
    clients = 1 if sharing is None else whole_number(at(sharing, "maxSharedClientsPerGpu"))
    if size is UNKNOWN or not isinstance(clients, int):
        return UNKNOWN
    parts = _partitions(_accelerator_kind(node_pool), size) if size else 1
    return parts if parts is UNKNOWN else parts * clients


def _accelerator_kind(node_pool: StackResource) -> str:
    machine = machine_catalogue("gcp").get(str(at(node_pool.props, "nodeConfig", "machineType")))
    own = machine.accelerator if machine is not None else None
    return own or str(at(accelerator_of(node_pool), "type"))


def _partitions(kind: str, size: str) -> int | Unknown:
    """Return into how many partitions of this size, such as `1g.10gb`, NVIDIA divides a GPU.

    It has seven compute units and eight memory units; a partition takes whole ones of both. (GKE's device plugin has the
    numbers as a table.)
    """
    named, whole = _PARTITION.fullmatch(size), _MEMORY_GB.get(kind)
    if named is None or whole is None:
        return UNKNOWN
    memory = max(1, round(_MEMORY_UNITS * int(named["memory"]) / whole))
    return min(_COMPUTE_UNITS // max(1, int(named["compute"])), _MEMORY_UNITS // memory)


def sharing_labels(accelerator: Value) -> Mapping[str, LabelFact]:
    """Return the labels by which jobs select partitions of GPUs, and GPUs that are shared."""
    sharing = at(accelerator, "gpuSharingConfig")
    strategy, clients = text_at(sharing, "gpuSharingStrategy"), count(at(sharing, "maxSharedClientsPerGpu"))
    found: Mapping[str, LabelFact | None] = {
        "cloud.google.com/gke-gpu-partition-size": text_at(accelerator, "gpuPartitionSize") or None,
        "cloud.google.com/gke-gpu-sharing-strategy": _STRATEGIES.get(strategy, UNKNOWN)
        if isinstance(strategy, str)
        else strategy,
        "cloud.google.com/gke-max-shared-clients-per-gpu": str(clients)
        if isinstance(clients, int)
        else clients,
    }
    return {key: value for key, value in found.items() if value is not None}


CLUSTER: Final = "gcp:container/cluster:Cluster"

#: A regional node pool has nodes in so many zones, unless it or its cluster names them.
_ZONES_OF_A_REGION: Final = 3


def pool_zones(node_pool: StackResource, resources: Sequence[StackResource]) -> frozenset[str] | Unknown:
    """Return the zones of its nodes: those it names, or those of its cluster; UNKNOWN if they are not shown."""
    zones, region = _declared(node_pool, resources)
    if zones is not None or region is None:
        return UNKNOWN if zones is None else zones
    of_region = zones_of(region)
    return frozenset(of_region) if len(of_region) == _ZONES_OF_A_REGION else UNKNOWN


def pool_limits(node_pool: StackResource, resources: Sequence[StackResource]) -> Limits:
    """Return how many nodes it may have, in all its zones and in each."""
    scaling = at(node_pool.props, "autoscaling")
    if scaling is UNKNOWN:
        return Limits(nodes=UNKNOWN)
    total = count(at(scaling, "totalMaxNodeCount"))
    if total is not None:
        return Limits(nodes=total, set_by="autoscaling.totalMaxNodeCount")
    in_zone, zones = _in_zone(node_pool, scaling), _zone_count(node_pool, resources)
    nodes = in_zone * zones if isinstance(in_zone, int) and isinstance(zones, int) else UNKNOWN
    field = "nodeCount" if scaling is None else "autoscaling.totalMaxNodeCount"
    return Limits(nodes=nodes, nodes_in_zone=in_zone, set_by=field)


def _declared(
    node_pool: StackResource, resources: Sequence[StackResource]
) -> tuple[frozenset[str] | Unknown | None, str | None]:
    """Return the zones that it or its cluster names; if they name none, the region in which GKE chooses them."""
    named = texts_at(node_pool.props, "nodeLocations")
    if named:
        return named, None
    found = clusters_of(node_pool, "gcp", resources)
    if not found:
        # The cluster decides, and another program makes it.
        return UNKNOWN, None
    of_cluster, location = texts_at(found[0].props, "nodeLocations"), text_at(found[0].props, "location")
    if of_cluster is UNKNOWN or location is UNKNOWN or location is None:
        return UNKNOWN, None
    if location not in regions("gcp"):
        # A cluster in a zone names only further ones.
        return frozenset({location, *(of_cluster or ())}), None
    return of_cluster or None, location


def _zone_count(node_pool: StackResource, resources: Sequence[StackResource]) -> int | Unknown:
    zones, region = _declared(node_pool, resources)
    if zones is None and region is not None:
        return _ZONES_OF_A_REGION
    return len(zones) if isinstance(zones, frozenset) else UNKNOWN


def _in_zone(node_pool: StackResource, scaling: Value) -> int | Unknown | None:
    if scaling is not None:
        return count(at(scaling, "maxNodeCount"))
    # A pool that names neither has nodes only where someone has resized it since.
    fixed = count(at(node_pool.props, "nodeCount"))
    return count(at(node_pool.props, "initialNodeCount")) if fixed is None else fixed
