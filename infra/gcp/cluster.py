"""Builds the GKE cluster of a GCP stack from its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from holdfast.components.cluster.gke.access import AuthorizedNetworks, DnsEndpoint
from holdfast.components.cluster.gke.component import GkeCluster, GkeClusterArgs
from holdfast.components.cluster.gke.control_plane import DatabaseKey, Maintenance, MaintenanceExclusion
from holdfast.components.cluster.gke.system_nodes import SystemNodesArgs

if TYPE_CHECKING:
    from holdfast.components.cluster.gke.access import ControlPlaneAccess
    from holdfast.components.network.gcp import VpcNativeNetwork
    from holdfast.infra.gcp.config.cluster import GcpAccess, GcpMaintenance
    from holdfast.infra.gcp.config.stack import GcpPlatform
    from holdfast.infra.gcp.preflight import Project


def cluster_of(platform: GcpPlatform, project: Project, network: VpcNativeNetwork, name: str) -> GkeCluster:
    """The stack's cluster; `name` is its physical name."""
    config = platform.cluster
    system = config.system_nodes
    return GkeCluster(
        "cluster",
        GkeClusterArgs(
            cluster_name=name,
            project=platform.project,
            location=platform.location,
            zones=project.cluster_zones,
            network=network,
            version=config.version,
            channel=cast("Literal['RAPID', 'REGULAR', 'STABLE', 'EXTENDED']", config.channel.value.upper()),
            maintenance=_maintenance(config.maintenance),
            access=_access(config.access),
            system_nodes=SystemNodesArgs(
                machine_type=system.machine_type,
                per_zone=system.per_zone,
                spare_per_zone=system.spare_per_zone,
                image_streaming=config.image_streaming,
            ),
            protected=platform.protected,
            database_key=None
            if config.database_key is None
            else DatabaseKey(key=config.database_key, project_number=project.number),
        ),
    )


def _access(config: GcpAccess) -> ControlPlaneAccess:
    if config.dns_endpoint is not None:
        return DnsEndpoint(allow_external=config.dns_endpoint.allow_external)
    return AuthorizedNetworks(cidrs=config.authorized_networks or ())


def _maintenance(config: GcpMaintenance) -> Maintenance:
    start, end = config.window.first
    exclusion = config.exclusion
    exclusions = (
        ()
        if exclusion is None
        else (
            MaintenanceExclusion(
                name="training",
                start=_midnight(exclusion.start),
                end=None if exclusion.end is None else _midnight(exclusion.end),
            ),
        )
    )
    return Maintenance(start=start, end=end, recurrence=config.window.recurrence, exclusions=exclusions)


def _midnight(day: str) -> str:
    return f"{day}T00:00:00Z"
