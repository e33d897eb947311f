"""Reads in which zones a node pool of GKE has nodes, and how many it may have there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.machines import regions, zones_of, zones_with
from pulumi_holdfast.ladder.reachability.facts import Limits
from pulumi_holdfast.program.clusters import clusters_of
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    count,
    known_items,
    of_type,
    text_at,
    texts_at,
)

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


def least_nodes(node_pool: StackResource, resources: Sequence[StackResource]) -> int:
    """Return how many nodes it always has, as far as that is known."""
    scaling = at(node_pool.props, "autoscaling")
    total, in_zone = (count(at(scaling, field)) for field in ("totalMinNodeCount", "minNodeCount"))
    if isinstance(total, int):
        return total
    each = _in_zone(node_pool, None) if scaling is None else in_zone
    zones = _zone_count(node_pool, resources)
    return each * zones if isinstance(each, int) and isinstance(zones, int) else 0


def fewer_addresses(
    node_pool: StackResource,
    resources: Sequence[StackResource],
    most_pods: int | Unknown | None,
    declared: int | Unknown | None,
) -> Iterator[str]:
    """Yield that the addresses of its pods are too few for as many nodes as it declares."""
    for what, nodes in _by_pod_range(node_pool, resources, _MOST_PODS if most_pods is None else most_pods):
        if isinstance(declared, int) and nodes < declared:
            yield f"{what} allows {nodes} of the {declared} nodes that it may have"


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


def without_machines(node_pool: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield that it has zones which the region of its cluster does not have, or in which there are no machines of its type."""
    machine, zones = (
        str(text_at(node_pool.props, "nodeConfig", "machineType")),
        pool_zones(node_pool, resources),
    )
    sold = zones_with(machine)
    if sold is not None and isinstance(zones, frozenset) and (missing := zones - sold):
        yield f"there were no {machine} in {', '.join(sorted(missing))} when the table of machines was made"
    named = texts_at(node_pool.props, "nodeLocations")
    if not isinstance(named, frozenset):
        return
    for cluster in clusters_of(node_pool, "gcp", resources):
        location = str(text_at(cluster.props, "location"))
        region = location if location in regions("gcp") else location.rpartition("-")[0]
        if region in regions("gcp") and (missing := named - {*zones_of(region)}):
            yield f"its cluster is in {region}, which has no {', '.join(sorted(missing))}"


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
