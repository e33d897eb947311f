"""Validates a GCP stack's configuration: cluster, maintenance, network, checkpoints, and rules across them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from ipaddress import IPv4Network
from typing import Final

from pulumi_holdfast.config import validation
from pulumi_holdfast.config.accepted_clusters import accepted_cluster_problems
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.existing import new_network_problems
from pulumi_holdfast.config.loader import PLATFORM, Parts, read_part, read_parts, read_section
from pulumi_holdfast.config.namespace import NamespaceSection
from pulumi_holdfast.config.network_validation import (
    ADDRESS_BITS,
    Range,
    covers_internet,
    fewest_bits,
    overlapping_range_problems,
    public_range_problems,
    range_size_problems,
    service_range_problems,
)
from pulumi_holdfast.config.validation import NAMESPACES, pool_and_ladder_problems
from pulumi_holdfast.gcp.config.cluster import (
    DnsEndpoint,
    GcpAccess,
    GcpCluster,
    GcpExistingCluster,
    GcpMaintenance,
    MaintenanceExclusion,
    MaintenanceWindow,
    cluster_variant,
)
from pulumi_holdfast.gcp.config.fields import REGION, is_zone_of, project_problem, region_problem
from pulumi_holdfast.gcp.config.network import (
    GcpClusterNetwork,
    GcpExistingNetwork,
    GcpNewNetwork,
    network_variant,
)
from pulumi_holdfast.gcp.config.pool import GcpPool, Upgrades
from pulumi_holdfast.gcp.config.pool_validation import (
    class_problems,
    named_machine,
    no_gpus,
    pool_problems,
    zone_problems,
)
from pulumi_holdfast.gcp.config.stack import GcpCheckpoints, GcpDocument, GcpPlatform, Recovery
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.taints import GKE_SPOT_TAINT, GPU

_A_DEFAULT_POOL: Final = (
    "`{name: cpu, capacity: on-demand, machineType: n2-standard-4, maxNodes: 20, default: true}`"
)

#: A regional control plane has its nodes in three zones by default.
_ZONES_OF_A_REGION: Final = 3

#: Prefixes of the namespaces that GKE creates or reserves.
_OF_GKE: Final = ("gke-", "gmp-")


def read_gcp_platform(document: Json, *, project: str | None, region: str | None) -> GcpPlatform:
    """Parse and validate a GCP stack's configuration with its values of `gcp:project` and `gcp:region`.

    Raises ConfigError with every problem.
    """
    read_section(GcpDocument, document, partial(gcp_problems, project=project, region=region))
    return GcpPlatform.model_validate_json(json.dumps({**document, "project": project, "region": region}))


def gcp_problems(document: Json, *, project: str | None, region: str | None) -> Iterator[Problem]:
    """The problems of a GCP stack's document, project and region that involve more than one field."""
    wrong_project, wrong_region = project_problem(project), region_problem(region)
    yield from (problem for problem in (wrong_project, wrong_region) if problem is not None)
    # Zones and keys depend on the region: their rules do not run without a valid one.
    here = None if wrong_region else region
    pools = read_parts(GcpPool, document.get("pools"))
    read = read_part(cluster_variant(document.get("cluster")), document, "cluster")
    cluster = read if isinstance(read, GcpCluster) else None
    if cluster is not None:
        yield from cluster_problems(cluster, here, f"{PLATFORM}.cluster")
    if isinstance(read, GcpExistingCluster) and here is not None:
        yield from _location(read.location, here, f"{PLATFORM}.cluster.location")
    yield from new_network_problems(document, f"{PLATFORM}.network")
    network = read_part(network_variant(document.get("network")), document, "network")
    if network is not None:
        yield from network_problems(
            network, region=here, most_nodes=_most_nodes(cluster, pools), at=f"{PLATFORM}.network"
        )
    checkpoints = read_part(GcpCheckpoints, document, "checkpoints")
    if checkpoints is not None:
        yield from checkpoint_problems(checkpoints, here, f"{PLATFORM}.checkpoints")
    yield from pool_and_ladder_problems(
        document,
        pools,
        problems_of=lambda pool, at: pool_problems(pool, here, at),
        as_pool=GcpPool.as_pool,
        a_default_pool=_A_DEFAULT_POOL,
    )
    yield from class_problems(document, pools.items)
    yield from accepted_cluster_problems(document)
    namespaces = read_parts(NamespaceSection, document.get("namespaces")).names
    yield from validation.cloud_prefix_problems(namespaces, _OF_GKE, "GKE", NAMESPACES)


def _most_nodes(cluster: GcpCluster | None, pools: Parts[GcpPool]) -> int:
    """The largest number of nodes at a time, as far as the configuration is valid."""
    # A blue-green upgrade creates a second set of nodes.
    of_pools = sum(
        pool.max_nodes * (2 if pool.upgrades is Upgrades.BLUE_GREEN else 1) for pool in pools.items.values()
    )
    if cluster is None:
        return of_pools
    system = cluster.system_nodes
    zones = len(cluster.zones) if cluster.zones else _ZONES_OF_A_REGION
    return of_pools + (system.per_zone + system.spare_per_zone) * zones


_ONE_WAY_IN: Final = "one of dnsEndpoint and authorizedNetworks"


def cluster_problems(cluster: GcpCluster, region: str | None, at: str) -> Iterator[Problem]:
    """The problems of a cluster; `region` is None if it is unknown."""
    yield from validation.minor_version_problems(cluster.version, (GKE_SPOT_TAINT, GPU), f"{at}.version")
    yield from access_problems(cluster.access, f"{at}.access")
    yield from maintenance_problems(cluster.maintenance, f"{at}.maintenance")
    if region is not None:
        yield from _location(cluster.location, region, f"{at}.location")
        yield from zone_problems(cluster.zones or (), region, f"{at}.zones")
        yield from _zone_of_control_plane(cluster, region, f"{at}.zones")
        yield from key_problems(cluster.database_key, region, f"{at}.databaseKey")
    machine, field = cluster.system_nodes.machine_type, f"{at}.systemNodes.machineType"
    yield from named_machine(machine, field)
    yield from no_gpus(machine, field)


def access_problems(access: GcpAccess, at: str) -> Iterator[Problem]:
    """Access that no client can use, or that opens the API server to the internet without confirmation."""
    named, blocks = access.dns_endpoint, access.authorized_networks
    if named is None and blocks is None:
        yield Problem(
            field=at,
            value="neither dnsEndpoint nor authorizedNetworks",
            allowed=_ONE_WAY_IN,
            fix="Add your public address, such as `authorizedNetworks: [203.0.113.7/32]`; or, for "
            "a private endpoint, the block of the network in which `pulumi up` runs.",
        )
    if named is not None and blocks is not None:
        yield Problem(field=at, value="both", allowed=_ONE_WAY_IN, fix="Remove one of the two.")
    if named is not None:
        yield from _dns_endpoint(named, f"{at}.dnsEndpoint")
    if covers_internet(blocks or ()):
        yield Problem(
            field=f"{at}.authorizedNetworks",
            value="the whole internet",
            allowed="the public blocks of your network",
            fix="Write your own addresses, such as 203.0.113.0/24; or, for an endpoint that is open to the internet "
            "and protected by IAM, `dnsEndpoint: {allowExternal: true}`.",
        )
    yield from validation.duplicate_problems(blocks or (), f"{at}.authorizedNetworks", "block")


def _dns_endpoint(endpoint: DnsEndpoint, at: str) -> Iterator[Problem]:
    if not endpoint.allow_external:
        yield Problem(
            field=f"{at}.allowExternal",
            value="not true",
            allowed="true: only IAM protects this endpoint, which is open to the whole internet or to no client",
            fix="Write `allowExternal: true` to confirm it; or write authorizedNetworks instead of dnsEndpoint, with "
            "the blocks of your network.",
        )


def _location(location: str | None, region: str, field: str) -> Iterator[Problem]:
    if location is not None and location != region and not is_zone_of(location, region):
        yield Problem(
            field=field,
            value=format_value(location),
            allowed=f"{region}, the stack's region, or one of its zones",
            fix=f"Leave it out for {region}, or change {REGION}.",
        )


def _zone_of_control_plane(cluster: GcpCluster, region: str, field: str) -> Iterator[Problem]:
    location, zones = cluster.location, cluster.zones
    if location is None or not is_zone_of(location, region) or zones is None or location in zones:
        return
    yield Problem(
        field=field,
        value=", ".join(zones),
        allowed=f"zones with {location} among them, where the control plane is",
        fix="Add it, or leave out zones for this one alone.",
    )


def key_problems(key: str | None, region: str, field: str) -> Iterator[Problem]:
    """A key in another location than the region of what it encrypts."""
    location = region if key is None else key.split("/")[3]
    if location != region:
        yield Problem(
            field=field,
            value=f"a key in {location}",
            allowed=f"a key in {region}, the region of what it encrypts",
            fix=f"Create one there: `gcloud kms keys create NAME --keyring RING --location {region} --purpose encryption`.",
        )


#: GKE needs so many hours of maintenance windows in any 32 days, of which 28 are whole weeks.
_FEWEST_HOURS: Final = 48
_WEEKS: Final = 4


def maintenance_problems(maintenance: GcpMaintenance, at: str) -> Iterator[Problem]:
    """Windows that are too short for GKE, and exclusions that end before they start."""
    yield from _window(maintenance.window, f"{at}.window")
    if maintenance.exclusion is not None:
        yield from _exclusion(maintenance.exclusion, f"{at}.exclusion")


def _window(window: MaintenanceWindow, at: str) -> Iterator[Problem]:
    days = window.days
    yield from validation.duplicate_problems([day.value for day in days], f"{at}.days", "day")
    a_week = len(set(days)) * window.hours
    if a_week * _WEEKS < _FEWEST_HOURS:
        enough = -(-_FEWEST_HOURS // (_WEEKS * len(set(days))))
        yield Problem(
            field=f"{at}.hours",
            value=f"{window.hours} on {len(set(days))} days, {a_week} hours a week",
            allowed=f"{_FEWEST_HOURS // _WEEKS} hours a week or more: GKE rejects less",
            fix=f"Write `hours: {enough}`, or more days.",
        )


def _exclusion(exclusion: MaintenanceExclusion, at: str) -> Iterator[Problem]:
    if exclusion.end is not None and exclusion.end <= exclusion.start:
        yield Problem(
            field=f"{at}.end",
            value=f"{exclusion.end}, not after the start {exclusion.start}",
            allowed="a day after the start",
            fix="Write a later date, or leave it out for an exclusion until the version's support ends.",
        )


#: The number of addresses that Compute Engine reserves in a subnetwork.
_RESERVED_ADDRESSES: Final = 4

#: The prefix length of the block that GKE gives each node, for up to 110 pods.
_PODS_OF_A_NODE: Final = 24

_WIDEST_SERVICES: Final = 16
_NARROWEST_SERVICES: Final = 27


def network_problems(
    network: GcpNewNetwork | GcpExistingNetwork | GcpClusterNetwork,
    *,
    region: str | None,
    most_nodes: int,
    at: str,
) -> Iterator[Problem]:
    """The problems of a network.

    `most_nodes` is the largest number of nodes at a time, as far as it is known; `region` is None if it is unknown.
    """
    if isinstance(network, GcpNewNetwork):
        yield from _new(network, most_nodes, at)
    elif isinstance(network, GcpExistingNetwork):
        yield from _existing(network, region, at)


def _new(network: GcpNewNetwork, most_nodes: int, at: str) -> Iterator[Problem]:
    nodes = Range(field=f"{at}.nodesCidr", block=IPv4Network(network.nodes_cidr))
    pods = Range(field=f"{at}.podsCidr", block=IPv4Network(network.pods_cidr))
    services = Range(field=f"{at}.servicesCidr", block=IPv4Network(network.services_cidr))
    ranges = (nodes, pods, services)
    yield from public_range_problems(ranges)
    yield from overlapping_range_problems(ranges)
    yield from range_size_problems(nodes, fewest_bits(most_nodes + _RESERVED_ADDRESSES), most_nodes)
    yield from range_size_problems(pods, fewest_bits(most_nodes) + ADDRESS_BITS - _PODS_OF_A_NODE, most_nodes)
    yield from service_range_problems(services, widest=_WIDEST_SERVICES, narrowest=_NARROWEST_SERVICES)


def _existing(network: GcpExistingNetwork, region: str | None, at: str) -> Iterator[Problem]:
    parts = network.subnetwork.split("/")
    if region is not None and len(parts) > 1 and parts[3] != region:
        yield Problem(
            field=f"{at}.subnetwork",
            value=f"a subnetwork in {parts[3]}",
            allowed=f"one in {region}, the stack's region",
            fix=f"Write another subnetwork, or change {REGION}.",
        )
    if network.pods_range == network.services_range:
        yield Problem(
            field=f"{at}.servicesRange",
            value=f"{format_value(network.services_range)}, also the range of pods",
            allowed="a secondary range for Services only",
            fix="Write another secondary range of the subnetwork.",
        )


#: The range of days for which Cloud Storage can keep soft-deleted objects.
_FEWEST_DAYS: Final = 7
_MOST_DAYS: Final = 90


def checkpoint_problems(checkpoints: GcpCheckpoints, region: str | None, at: str) -> Iterator[Problem]:
    """The problems of a bucket; `region` is None if it is unknown."""
    days = checkpoints.retain_days
    if checkpoints.recovery is Recovery.SOFT_DELETE and not _FEWEST_DAYS <= days <= _MOST_DAYS:
        yield Problem(
            field=f"{at}.retainDays",
            value=f"{days} with soft delete",
            allowed=f"{_FEWEST_DAYS} to {_MOST_DAYS}, Cloud Storage's range for soft delete",
            fix=f"Write `retainDays: {min(max(days, _FEWEST_DAYS), _MOST_DAYS)}`, or add `recovery: versioning`.",
        )
    if checkpoints.hierarchical and checkpoints.recovery is Recovery.VERSIONING:
        yield Problem(
            field=f"{at}.recovery",
            value="versioning with hierarchical: true",
            allowed="soft-delete: a bucket with a hierarchical namespace keeps no versions, and Cloud Storage FUSE "
            "supports none",
            fix="Write `recovery: soft-delete`, or leave out hierarchical.",
        )
    if region is not None:
        yield from key_problems(checkpoints.kms_key, region, f"{at}.kmsKey")
