"""Reads in which zones a node pool of GKE has nodes, and how many it may have there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.machines import regions, zones_of
from pulumi_holdfast.ladder.reachability.facts import Limits
from pulumi_holdfast.program.clusters import clusters_of
from pulumi_holdfast.program.resources import StackResource, Value, at, count, text_at, texts_at

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
