"""Builds the GKE cluster of a GCP stack from its configuration, with its network, or uses an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from pulumi_holdfast.config import naming
from pulumi_holdfast.gcp.config.sections import GcpExistingCluster
from pulumi_holdfast.gcp.control_plane.access import AuthorizedNetworks, DnsEndpoint
from pulumi_holdfast.gcp.control_plane.component import GkeCluster, GkeClusterArgs
from pulumi_holdfast.gcp.control_plane.control_plane import DatabaseKey, Maintenance, MaintenanceExclusion
from pulumi_holdfast.gcp.control_plane.existing import ExistingGkeCluster, ExistingGkeClusterArgs
from pulumi_holdfast.gcp.control_plane.system_nodes import SystemNodesArgs
from pulumi_holdfast.gcp.stack_network import network_of

if TYPE_CHECKING:
    from pulumi_holdfast.gcp.config.sections import GcpAccess, GcpMaintenance, GcpPlatform
    from pulumi_holdfast.gcp.control_plane.access import ControlPlaneAccess
    from pulumi_holdfast.gcp.preflight import Project


def cluster_of(platform: GcpPlatform, project: Project, stack: str) -> GkeCluster | ExistingGkeCluster:
    """The cluster of the stack of this name: a new one in its network, or the existing one."""
    name, config = naming.gke_cluster_name(stack), platform.cluster
    if isinstance(config, GcpExistingCluster):
        return _existing(platform, project, name)
    network, system = network_of(platform, name), config.system_nodes
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
            if config.secrets_key is None
            else DatabaseKey(key=config.secrets_key, project_number=project.number),
        ),
    )


def _existing(platform: GcpPlatform, project: Project, name: str) -> ExistingGkeCluster:
    found = project.cluster
    if found is None:
        raise TypeError("the existing cluster was not looked up; preflight must do it")
    return ExistingGkeCluster(
        "cluster",
        ExistingGkeClusterArgs(
            cluster_name=found.name,
            project=platform.project,
            location=platform.location,
            host=found.host,
            certificate_authority=found.certificate_authority,
            nodes_of=name,
        ),
    )


def kubernetes_version(platform: GcpPlatform, project: Project) -> str:
    """The version of the cluster: as configured, or as the existing cluster has it."""
    config = platform.cluster
    if isinstance(config, GcpExistingCluster):
        return project.cluster.version if project.cluster is not None else ""
    return config.version


def _access(config: GcpAccess) -> ControlPlaneAccess:
    if config.dns_endpoint is not None:
        return DnsEndpoint(allow_external=config.dns_endpoint.allow_external)
    return AuthorizedNetworks(cidrs=config.authorized_networks or ())


def _maintenance(config: GcpMaintenance) -> Maintenance:
    start, end = config.window.first
    exclusions = tuple(
        MaintenanceExclusion(
            name="training",
            start=_midnight(each.start),
            end=None if each.end is None else _midnight(each.end),
        )
        for each in config.exclusions
    )
    return Maintenance(start=start, end=end, recurrence=config.window.recurrence, exclusions=exclusions)


def _midnight(day: str) -> str:
    return f"{day}T00:00:00Z"
