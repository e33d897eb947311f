"""Reads in which zones a node pool of GKE has nodes, and how many it may have there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from holdfast.policies.clusters import clusters_of
from holdfast.policies.resources import (
    StackResource,
    Value,
    at,
    count,
    items_at,
    known_items,
    of_type,
    text_at,
    texts_at,
)
from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.machines import regions, zones_of
from holdfast.scheduling.reachability.facts import Limits
from holdfast.scheduling.reachability.machine_capacity import MachineCapacity

CLUSTER: Final = "gcp:container/cluster:Cluster"

#: A regional node pool has nodes in so many zones, unless it or its cluster names them.
_ZONES_OF_A_REGION: Final = 3
_SUBNETWORK: Final = "gcp:compute/subnetwork:Subnetwork"
#: So many pods may a node have, unless its pool or its cluster says otherwise.
_MOST_PODS: Final = 110


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


def fewer_nodes(
    node_pool: StackResource,
    resources: Sequence[StackResource],
    machines: tuple[MachineCapacity, ...] | Unknown,
    most_pods: int | Unknown | None,
    declared: int | Unknown | None,
) -> Iterator[str]:
    """Yield what of its cluster keeps the pool from having as many nodes as it declares."""
    if not isinstance(declared, int):
        return
    scales = at(node_pool.props, "autoscaling") is not None
    bounds = [*_by_cluster_limits(node_pool, resources, machines)] if scales else []
    addresses = _by_pod_range(node_pool, resources, _MOST_PODS if most_pods is None else most_pods)
    for what, nodes in (*bounds, *addresses):
        if nodes < declared:
            yield f"{what} allows {nodes} of the {declared} nodes that it may have"


def _by_cluster_limits(
    node_pool: StackResource,
    resources: Sequence[StackResource],
    machines: tuple[MachineCapacity, ...] | Unknown,
) -> Iterator[tuple[str, int]]:
    """Yield how many nodes the resource limits of node auto-provisioning allow: they count the nodes of all pools."""
    if machines is UNKNOWN or not machines:
        return
    for cluster in clusters_of(node_pool, "gcp", resources):
        scaling = at(cluster.props, "clusterAutoscaling")
        limits = items_at(scaling, "resourceLimits")
        for each in () if limits is UNKNOWN or at(scaling, "enabled") is False else limits:
            kind, most = text_at(each, "resourceType"), count(at(each, "maximum"))
            used = min(_used(machine, str(kind)) for machine in machines)
            if isinstance(most, int) and used:
                yield f"the limit `{kind}: {most}` of its cluster's autoscaling", int(most // used)


def _used(machine: MachineCapacity, kind: str) -> Fraction:
    """How much of a limit one machine uses: memory is in GB."""
    whole = machine.capacity
    known = {"cpu": Fraction(whole.cpu_millis, 1000), "memory": Fraction(whole.memory_mib, 1024)}
    return known.get(kind, Fraction(whole.gpus if kind == machine.accelerator else 0))


def _by_pod_range(
    node_pool: StackResource, resources: Sequence[StackResource], most_pods: int | Unknown
) -> Iterator[tuple[str, int]]:
    """Yield how many nodes the range of its pods' addresses has room for: each takes twice its pods, in a power of two."""
    name, block = (text_at(node_pool.props, "networkConfig", key) for key in ("podRange", "podIpv4CidrBlock"))
    for cluster in clusters_of(node_pool, "gcp", resources) if name is None and block is None else ():
        policy = at(cluster.props, "ipAllocationPolicy")
        if at(policy, "additionalPodRangesConfig") is None:
            name, block = (
                text_at(policy, key) for key in ("clusterSecondaryRangeName", "clusterIpv4CidrBlock")
            )
    ranges = [
        text_at(each, "ipCidrRange")
        for subnetwork in of_type(resources, _SUBNETWORK)
        for each in known_items(subnetwork.props, "secondaryIpRanges")
        if isinstance(name, str) and text_at(each, "rangeName") == name
    ]
    sizes = {str(each).rpartition("/")[2] for each in (ranges or [block])}
    if isinstance(most_pods, int) and all(each.isdecimal() and int(each) <= 32 for each in sizes):
        each = 2 ** (2 * most_pods - 1).bit_length()
        yield (
            f"the range {name or block} of its pods' addresses",
            max(2 ** (32 - int(size)) for size in sizes) // each,
        )


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
