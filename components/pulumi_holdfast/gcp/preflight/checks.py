"""Checks what a Google Cloud project offers against a stack. Pure, except for the PATH."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.preflight import advice
from pulumi_holdfast.gcp.config.sections import GcpExistingCluster, GcpNewNetwork
from pulumi_holdfast.gcp.control_plane.access import AUTH_PLUGIN
from pulumi_holdfast.gcp.preflight.existing_cluster import ExistingGke, existing_gke_problems
from pulumi_holdfast.gcp.preflight.quotas import quota_uses
from pulumi_holdfast.ladder.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pulumi_holdfast.gcp.config.sections import Channel, GcpCluster, GcpPlatform
    from pulumi_holdfast.gcp.preflight.quotas import Granted


@dataclass(frozen=True, kw_only=True)
class SubnetworkRanges:
    """The address ranges of a stack's subnetwork, as an earlier update created them; None for a missing range."""

    nodes: str
    pods: str | None
    services: str | None


@dataclass(frozen=True, kw_only=True)
class Project:
    """The results of the preflight queries in a project.

    `number` is part of the names of its identities. `storage_agent` is the email of the account with which Cloud Storage uses
    keys; it exists if the stack has a key. `cluster` is the existing cluster that the stack uses, None if it creates one.
    `cluster_zones` are the zones of the system nodes, and of pools without zones. `zones` are those of the stack's region, in
    order, `offered` the stack's machine types that each of them offers, `newest` the newest version of each release channel.
    `subnetwork` has the ranges of the stack's subnetwork, and `buckets` whether each of its buckets has a hierarchical
    namespace, by name: both are empty before the first update. `granted` is what the project may use of each quota. The result
    of a failed query is None, or missing in a mapping; `failed_queries` has the reasons.
    """

    number: str
    storage_agent: str
    cluster_zones: tuple[str, ...]
    cluster: ExistingGke | None = None
    zones: tuple[str, ...] | None = None
    offered: Mapping[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])
    newest: Mapping[Channel, str] = field(default_factory=dict["Channel", str])
    subnetwork: SubnetworkRanges | None = None
    buckets: Mapping[str, bool] = field(default_factory=dict[str, bool])
    granted: Granted | None = None
    failed_queries: tuple[str, ...] = ()


def preflight_problems(platform: GcpPlatform, project: Project) -> Iterator[Problem]:
    """The problems that stop a stack in this project."""
    if project.cluster is not None:
        yield from existing_gke_problems(platform, project.cluster)
    yield from _replaced_bucket(platform, project)
    yield from _cluster(platform, project)
    for index, pool in enumerate(platform.pools):
        at = f"{PLATFORM}.pools[{index}]"
        yield from _zones(pool.zones or (), project, f"{at}.zones")
        yield from _unsold(
            pool.machine_type,
            pool.zones or project.cluster_zones,
            project,
            machine_at=f"{at}.machineType",
            zones_at=f"{at}.zones",
        )


def _cluster(platform: GcpPlatform, project: Project) -> Iterator[Problem]:
    """The problems of a cluster that the stack creates, and of its network."""
    cluster, at = platform.cluster, f"{PLATFORM}.cluster"
    if isinstance(cluster, GcpExistingCluster):
        return
    yield from _version(cluster, platform.location, project)
    if isinstance(platform.network, GcpNewNetwork) and project.subnetwork is not None:
        yield from _changed_ranges(platform.network, project.subnetwork)
    yield from _zones(cluster.zones or (), project, f"{at}.zones")
    if platform.location != platform.region:
        yield from _zone(platform.location, project, f"{at}.location")
    yield from _unsold(
        cluster.system_nodes.machine_type,
        project.cluster_zones,
        project,
        machine_at=f"{at}.systemNodes.machineType",
        zones_at=f"{at}.zones",
    )


def preflight_warnings(platform: GcpPlatform, project: Project) -> Iterator[str]:
    """Quotas that are too small, and the checks that did not run: a line each."""
    yield from advice(quota_uses(platform, project.cluster_zones, project.granted))
    if project.failed_queries:
        yield f"not checked, because these queries failed: {'; '.join(project.failed_queries)}."


def _changed_ranges(network: GcpNewNetwork, existing: SubnetworkRanges) -> Iterator[Problem]:
    """Ranges that cannot change: the provider would replace the cluster, or Google would reject the update."""
    at = f"{PLATFORM}.network"
    if not IPv4Network(existing.nodes).subnet_of(IPv4Network(network.cidr)):
        yield Problem(
            field=f"{at}.cidr",
            value=f"{format_value(network.cidr)}, but the stack's subnetwork has {existing.nodes}",
            allowed=f"{existing.nodes} or a block that contains it: any other block replaces the subnetwork, the cluster "
            "and everything in it",
            fix=f"Write `cidr: {existing.nodes}`, or a larger block around it. For other addresses, create another "
            "stack and move the jobs.",
        )
    asked = (
        ("podsCidr", network.pods_cidr, existing.pods),
        ("servicesCidr", network.services_cidr, existing.services),
    )
    for name, new, old in asked:
        if old is not None and new != old:
            yield Problem(
                field=f"{at}.{name}",
                value=f"{format_value(new)}, but the stack's subnetwork has {old}",
                allowed=f"{old}: Google rejects a change of a range that a cluster uses",
                fix=f"Write `{name}: {old}`. For other addresses, create another stack and move the jobs.",
            )


def _replaced_bucket(platform: GcpPlatform, project: Project) -> Iterator[Problem]:
    """Another kind of namespace for a bucket, which replaces it, with all checkpoints in it."""
    asked = platform.checkpoints.hierarchical
    if not project.buckets or asked in project.buckets.values():
        return
    names = ", ".join(sorted(project.buckets))
    yield Problem(
        field=f"{PLATFORM}.checkpoints.hierarchical",
        value=f"{format_value(asked)}, but {names} was created with {format_value(not asked)}",
        allowed=f"{format_value(not asked)}: Cloud Storage cannot change the namespace of a bucket, so the bucket would be "
        "replaced, and its checkpoints deleted",
        fix=f"Write `hierarchical: {str(not asked).lower()}`. For another namespace, create another stack and copy the "
        "checkpoints; for a bucket that a destroyed stack left, remove its label: `gcloud storage buckets update "
        "gs://BUCKET --remove-labels holdfast-stack`.",
    )


def _version(cluster: GcpCluster, location: str, project: Project) -> Iterator[Problem]:
    asked, channel = _minor(cluster.version), cluster.channel
    newest = project.newest.get(channel)
    if newest is None or _minor(newest) >= asked:
        return
    having = [one.value for one, version in project.newest.items() if _minor(version) >= asked]
    yield Problem(
        field=f"{PLATFORM}.cluster.channel",
        value=f"{channel.value}, whose newest version in {location} is {newest}",
        allowed=f"a channel with {cluster.version}: {', '.join(having) or 'none yet'}",
        fix=f"Write `channel: {having[0]}`."
        if having
        else "Write another location, or wait for the version.",
    )


def _minor(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _zones(zones: Sequence[str], project: Project, at: str) -> Iterator[Problem]:
    for index, zone in enumerate(zones):
        yield from _zone(zone, project, f"{at}[{index}]")


def _zone(zone: str, project: Project, field: str) -> Iterator[Problem]:
    if project.zones is not None and zone not in project.zones:
        yield Problem(
            field=field,
            value=format_value(zone),
            allowed=f"one of the zones of this project: {', '.join(project.zones)}",
            fix="Write another zone.",
        )


def _unsold(
    machine_type: str, zones: Sequence[str], project: Project, *, machine_at: str, zones_at: str
) -> Iterator[Problem]:
    """A machine type that a zone of a node pool does not offer: GKE creates the pool in all zones or in none."""
    without = [
        zone for zone in zones if zone in project.offered and machine_type not in project.offered[zone]
    ]
    if not without:
        return
    there = [zone for zone in zones if zone not in without]
    elsewhere = sorted(zone for zone, offered in project.offered.items() if machine_type in offered)
    yield Problem(
        field=zones_at if there else machine_at,
        value=f"{format_value(machine_type)}, which {', '.join(without)} does not offer",
        allowed=f"zones that offer it: {', '.join(elsewhere) or 'none of the zones queried'}",
        fix=f"Write `zones: [{', '.join(there or elsewhere)}]`."
        if there or elsewhere
        else f"Find its zones with `gcloud compute machine-types list --filter name={machine_type}`.",
    )


def credential_plugin_problem(find: Callable[[str], str | None] = shutil.which) -> Problem | None:
    """The problem of a missing credential plugin of GKE clusters; None if it is installed.

    `find` returns the path of a command. Without the plugin, `pulumi up` would create the cluster and then fail half an
    hour later, and no object in the cluster could be read or deleted.
    """
    if find(AUTH_PLUGIN) is not None:
        return None
    return Problem(
        field=AUTH_PLUGIN,
        value="no such command on the PATH of pulumi",
        allowed="Google's credential plugin, which gets tokens for clients of the cluster",
        fix=f"Install it with `gcloud components install {AUTH_PLUGIN}`, or as the package "
        f"google-cloud-cli-{AUTH_PLUGIN} of your distribution.",
    )
