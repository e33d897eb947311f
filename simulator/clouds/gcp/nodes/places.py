"""Where a node pool's nodes are: their cluster, their zones."""

import re
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.scheduling.machines import zones_of as region_zones
from holdfast.simulator.clouds.state import CloudObject, Inventory
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

CLUSTER: Final = "gcp:container/cluster:Cluster"
NODE_POOL: Final = "gcp:container/nodePool:NodePool"
_ZONE: Final = re.compile(r"^(?P<region>[a-z]+-[a-z]+\d+)-[a-z]$")
# A cluster of a region that names no zones is in so many of it.
_ZONES: Final = 3


def cluster_name(pool: CloudObject) -> str:
    """Return the name of a pool's cluster, which the pool may give with the path to it."""
    return str(pool.outputs.get("cluster") or "").rpartition("/")[2]


def cluster_of(pool: CloudObject, inventory: Inventory) -> CloudObject | None:
    """Return a pool's cluster, None where it is none of this cloud's."""
    named = [one for one in inventory.of_type(CLUSTER) if one.outputs.get("name") == cluster_name(pool)]
    here = [one for one in named if one.outputs.get("location") in (None, pool.outputs.get("location"))]
    return next(iter(here or named), None)


def zones_of(pool: CloudObject, inventory: Inventory) -> tuple[str, ...]:
    """Return a pool's zones: its own, else its cluster's, else those of where both are."""
    cluster = cluster_of(pool, inventory)
    own = sequence(pool.outputs.get("nodeLocations"))
    shared = sequence(cluster.outputs.get("nodeLocations")) if cluster else ()
    location = str(pool.outputs.get("location") or (cluster.outputs.get("location") if cluster else "") or "")
    home = (location,) if _ZONE.match(location) else ()
    # GKE shows of a zonal cluster, as its locations, those beside its own.
    named = tuple(str(zone) for zone in own) or (*home, *(str(zone) for zone in shared if zone not in home))
    return named or region_zones(location)[:_ZONES]


def region_of(zone: str) -> str:
    """Return the region of a zone."""
    match = _ZONE.match(zone)
    return match["region"] if match else zone


def node_config(pool: CloudObject) -> Json:
    """Return a pool's node configuration, with what GKE has added to it."""
    return {**mapping(pool.inputs.get("nodeConfig")), **mapping(pool.outputs.get("nodeConfig"))}
