"""Queries the existing GKE cluster that a stack uses, and checks what the stack needs of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi_gcp.container import get_cluster

from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.preflight import (
    NodeGroup,
    missing_cluster,
    system_node_problems,
    unmet,
    version_problems,
)
from pulumi_holdfast.ladder.labels import SYSTEM, SYSTEM_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pulumi
    from pulumi_gcp.container import GetClusterResult
    from pulumi_gcp.container.outputs import GetClusterNodePoolResult

    from pulumi_holdfast.config.preflight import CloudQueries
    from pulumi_holdfast.gcp.config.sections import GcpPlatform
    from pulumi_holdfast.ladder.errors import Problem


@dataclass(frozen=True, kw_only=True)
class ExistingGke:
    """A cluster as GKE has it. `host` is the address or the DNS name of its API server; the latter needs no authority.

    `zones` are those of its nodes. `workload_pool` is empty without workload identity.
    """

    name: str
    exists: bool = True
    version: str = ""
    host: str = ""
    certificate_authority: str | None = None
    zones: tuple[str, ...] = ()
    autopilot: bool = False
    workload_pool: str = ""
    groups: tuple[NodeGroup, ...] = ()


#: What the provider and Google say of a cluster that does not exist.
_UNKNOWN: Final = ("not found", "notFound", "Not found")


def existing_gke(platform: GcpPlatform, queries: CloudQueries) -> ExistingGke | None:
    """The existing cluster of a stack; None for a stack that creates one. Raises ConfigError if it cannot be read."""
    name = platform.existing_cluster
    if name is None:
        return None
    return queries.required("container.clusters.get", lambda: _cluster(platform, name, queries.options))


def _cluster(platform: GcpPlatform, name: str, options: pulumi.InvokeOptions) -> ExistingGke:
    try:
        found = get_cluster(name=name, location=platform.location, project=platform.project, opts=options)
    except Exception as error:
        if any(text in str(error) for text in _UNKNOWN):
            return ExistingGke(name=name, exists=False)
        raise
    if not found.master_version:
        return ExistingGke(name=name, exists=False)
    dns = _dns_name(found)
    return ExistingGke(
        name=name,
        version=found.master_version,
        host=dns or found.endpoint,
        certificate_authority=None if dns else found.master_auths[0].cluster_ca_certificate,
        zones=_zones(found),
        autopilot=found.enable_autopilot,
        workload_pool=next((each.workload_pool for each in found.workload_identity_configs), ""),
        groups=tuple(_group(pool) for pool in found.node_pools),
    )


def _dns_name(found: GetClusterResult) -> str:
    """The DNS name of the API server, if it accepts clients from outside."""
    endpoints = (dns for each in found.control_plane_endpoints_configs for dns in each.dns_endpoint_configs)
    return next((dns.endpoint for dns in endpoints if dns.allow_external_traffic), "")


def _zones(found: GetClusterResult) -> tuple[str, ...]:
    """The zones of the cluster's nodes; the list lacks the zone of a zonal control plane."""
    is_zone = found.location is not None and found.location.count("-") > 1
    return tuple(sorted({*found.node_locations, *([found.location or ""] if is_zone else [])}))


def _group(pool: GetClusterNodePoolResult) -> NodeGroup:
    config = pool.node_configs[0] if pool.node_configs else None
    taints = (
        () if config is None else (taint for taint in config.taints if taint.effect != "PREFER_NO_SCHEDULE")
    )
    return NodeGroup(
        name=pool.name,
        labels={} if config is None else config.labels,
        taints=[taint.key for taint in taints],
        count=None if pool.autoscalings else pool.node_count,
    )


def existing_gke_problems(platform: GcpPlatform, cluster: ExistingGke) -> Iterator[Problem]:
    """The requirements of the stack that the cluster does not meet."""
    name, place = cluster.name, f"--location {platform.location} --project {platform.project}"
    if not cluster.exists:
        yield missing_cluster(
            name,
            f"{platform.location} of {platform.project}",
            f"gcloud container clusters list --project {platform.project}",
        )
        return
    yield from version_problems(name, cluster.version)
    if cluster.autopilot:
        yield unmet(
            f"{format_value(name)}, an Autopilot cluster",
            "a Standard cluster, in which the stack creates node pools",
            "Write another cluster.",
        )
        return
    if not cluster.workload_pool:
        yield unmet(
            f"{format_value(name)}, a cluster without workload identity",
            f"a cluster with the workload pool {platform.project}.svc.id.goog: jobs get access to checkpoints with it",
            f"Run `gcloud container clusters update {name} {place} --workload-pool {platform.project}.svc.id.goog`.",
        )
    yield from system_node_problems(
        name,
        cluster.groups,
        fewest=1,
        fix=f"Run `gcloud container node-pools update POOL --cluster {name} {place} --node-labels "
        f"{SYSTEM}={SYSTEM_VALUE}` for a pool of on-demand nodes without GPUs.",
    )
