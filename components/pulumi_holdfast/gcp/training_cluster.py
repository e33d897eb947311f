"""A training cluster on Google Cloud: project checks, network, cluster, pools, services, training namespaces.

`depends_on`, read backwards, is the order of `pulumi destroy`. Training namespaces go while KubeRay and JobSet still
remove their finalizers, and the fallback controller when no job is left to move. Then pools go, operators while they
have system nodes, and the network last, because nodes drain through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast

import pulumi

from pulumi_holdfast.config import naming
from pulumi_holdfast.config.loader import chart_source
from pulumi_holdfast.config.storage import VolumeKind
from pulumi_holdfast.gcp.checkpoints import CheckpointBucket, CheckpointBucketArgs, CustomerKey, stores_of
from pulumi_holdfast.gcp.config.sections import GcpExistingCluster, Recovery
from pulumi_holdfast.gcp.control_plane.access import (
    AuthorizedNetworks,
    DnsEndpoint,
    TrustedIssuer,
    TrustedIssuerArgs,
)
from pulumi_holdfast.gcp.control_plane.component import (
    ExistingGkeCluster,
    ExistingGkeClusterArgs,
    GkeCluster,
    GkeClusterArgs,
)
from pulumi_holdfast.gcp.control_plane.control_plane import DatabaseKey, Maintenance, MaintenanceExclusion
from pulumi_holdfast.gcp.control_plane.system_nodes import SystemNodesArgs
from pulumi_holdfast.gcp.identities import make_namespaces
from pulumi_holdfast.gcp.network import network_of
from pulumi_holdfast.gcp.pools import make_classes, make_pools, pool_summaries
from pulumi_holdfast.gcp.preflight.queries import check_project
from pulumi_holdfast.kubernetes import labels
from pulumi_holdfast.kubernetes.admission.rules import gke_rules, spot_classes
from pulumi_holdfast.kubernetes.cluster_services import AdmissionPlan, ClusterServices, check_fallback
from pulumi_holdfast.kubernetes.job_metrics import GKE_METRICS
from pulumi_holdfast.kubernetes.other_clusters import OtherStacks, all_users, other_clusters
from pulumi_holdfast.kubernetes.outputs import ClusterOutputs
from pulumi_holdfast.kubernetes.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_holdfast.gcp.config.sections import GcpAccess, GcpMaintenance, GcpPlatform
    from pulumi_holdfast.gcp.control_plane.access import ControlPlaneAccess
    from pulumi_holdfast.gcp.control_plane.control_plane import StorageDriver
    from pulumi_holdfast.gcp.preflight.checks import Project


#: The drivers that a cluster has only for volumes of these kinds.
_DRIVERS: Final[Mapping[VolumeKind, StorageDriver]] = {
    VolumeKind.SHARED: "filestore",
    VolumeKind.PARALLEL: "lustre",
}


@dataclass(frozen=True, kw_only=True)
class TrainingClusterArgs:
    """`platform` is the parsed configuration.

    `environment` is in the names and labels of the cluster: no other cluster of the project has it.
    """

    platform: GcpPlatform
    environment: str


class TrainingCluster(pulumi.ComponentResource):
    """A training cluster on Google Cloud, with everything that it needs (`holdfast:gcp:TrainingCluster`).

    `kubernetes` is the provider of its API server. Raises ConfigError, before any of its parts is registered, if jobs of the
    configuration cannot fall back, or if the project cannot hold the cluster.
    """

    kubernetes: pulumi.ProviderResource
    outputs: ClusterOutputs

    def __init__(
        self, name: str, args: TrainingClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        platform, environment = args.platform, args.environment
        summaries = pool_summaries(platform)
        check_fallback(platform, summaries, cloud=platform.cloud)
        options = labels.with_transformations(
            opts,
            labels.kubernetes_labels(labels.stack_labels(environment)),
            labels.google_labels({**platform.tags, **labels.environment_labels(environment)}),
        )
        super().__init__("holdfast:gcp:TrainingCluster", name, None, options)
        project = check_project(platform, environment, parent=self)
        inside = pulumi.ResourceOptions(parent=self)

        cluster = cluster_of(platform, project, environment, parent=self)
        self.kubernetes = cluster.kubernetes
        services = ClusterServices(
            parent=self,
            cluster=cluster,
            kubernetes=cluster.kubernetes,
            charts=chart_source(platform.mirror.charts),
            images=platform.mirror.images,
            scrapers=platform.fallback.monitoring.scrapers,
            metrics=GKE_METRICS,
        )

        pools = make_pools(platform, project, cluster, parent=self)
        classes = make_classes(platform, pools, cluster=name, after=services.after())
        operators = services.operators(platform.namespaces)
        classless = (pool.as_pool() for pool in platform.pools if pool.compute_class is None)
        others = other_clusters(platform.clusters, issuer=cluster.workload_identity_issuer, parent=self)
        trusted = _trusted_issuers(platform, project, environment, parent=self)
        users = {home: issuer.users for home, issuer in trusted.items()}
        prerequisites = services.admission_and_fallback(
            platform.fallback,
            AdmissionPlan(
                kubernetes_version=kubernetes_version(platform, project),
                pools=platform.scheduling_pools(),
                pod_rules=gke_rules(classless, platform.classes()),
                selections=spot_classes(platform.classes()),
            ),
            pools=[*pools, *classes],
            clusters=others.connections,
            accepted=all_users(users),
        )
        checkpoints = _checkpoints(naming.part(name, "checkpoints"), platform, project, opts=inside)
        stores = stores_of(platform, checkpoints, parent=self)
        storage = _storage(platform, naming.gke_cluster_name(environment), cluster, parent=self)
        identities = make_namespaces(
            platform,
            project,
            cluster=name,
            environment=naming.gke_environment(environment),
            stores=stores,
            pools=summaries,
            others=OtherStacks(references=others.references, region=platform.region),
            accepted=users,
            storage=storage,
            after=services.after(
                operators, *pools, *classes, *prerequisites, checkpoints, *storage.resources
            ),
        )
        self.outputs = ClusterOutputs(
            pools=platform.scheduling_pools(),
            namespaces=platform.namespaces,
            facts=summaries,
            region=platform.region,
            cluster=cluster.cluster_name,
            kubeconfig=cluster.kubeconfig,
            issuer=cluster.workload_identity_issuer,
            checkpoints=checkpoints.bucket_name,
            checkpoint_uris={name: store.uri for name, store in stores.items()},
            identities=identities,
            token_exchanges={each.issuer: trusted[each.name].exchange for each in platform.accepts_from},
        )
        self.register_outputs(self.outputs.by_name())


def _storage(
    platform: GcpPlatform, label: str, cluster: GkeCluster | ExistingGkeCluster, *, parent: pulumi.Resource
) -> Storage:
    """The volumes of data. Without any, nothing is imported: their services take as long to import as all the others."""
    if not platform.storage:
        return Storage()
    from pulumi_holdfast.gcp.storage import make_storage

    network_id = cluster.network_id if isinstance(cluster, GkeCluster) else None
    return make_storage(platform, label=label, network_id=network_id, parent=parent)


def _trusted_issuers(
    platform: GcpPlatform, project: Project, environment: str, *, parent: pulumi.Resource
) -> Mapping[str, TrustedIssuer]:
    """The trust in the clusters whose jobs the stack accepts, by their names."""
    return {
        each.name: TrustedIssuer(
            naming.trusted_issuer(parent.pulumi_resource_name, each.name),
            TrustedIssuerArgs(
                project=platform.project,
                project_number=project.number,
                account_id=naming.home_account(environment, each.name),
                cluster=each.name,
                issuer=each.issuer,
            ),
            opts=pulumi.ResourceOptions(parent=parent),
        )
        for each in platform.accepts_from
    }


def _checkpoints(
    name: str, platform: GcpPlatform, project: Project, *, opts: pulumi.ResourceOptions
) -> CheckpointBucket:
    section = platform.checkpoints
    key = section.kms_key
    return CheckpointBucket(
        name,
        CheckpointBucketArgs(
            project=platform.project,
            location=platform.region,
            namespaces=[namespace.name for namespace in platform.namespaces],
            retain_days=section.retain_days,
            protected=platform.protected,
            versioned=section.recovery is Recovery.VERSIONING,
            hierarchical=section.hierarchical,
            key=None if key is None else CustomerKey(name=key, storage_agent=project.storage_agent),
        ),
        opts=opts,
    )


def cluster_of(
    platform: GcpPlatform, project: Project, environment: str, *, parent: pulumi.Resource
) -> GkeCluster | ExistingGkeCluster:
    """The control plane of the training cluster `parent`: a new one in its network, or the existing one."""
    name, config = naming.gke_cluster_name(environment), platform.cluster
    if isinstance(config, GcpExistingCluster):
        return _existing(platform, project, name, parent)
    network, system = network_of(platform, name, parent=parent), config.system_nodes
    return GkeCluster(
        naming.part(parent.pulumi_resource_name, "cluster"),
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
            managed_prometheus=platform.keeps_job_metrics,
            database_key=None
            if config.secrets_key is None
            else DatabaseKey(key=config.secrets_key, project_number=project.number),
            drivers=[_DRIVERS[kind] for kind in _DRIVERS if kind in {each.kind for each in platform.storage}],
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def _existing(
    platform: GcpPlatform, project: Project, name: str, parent: pulumi.Resource
) -> ExistingGkeCluster:
    found = project.cluster
    if found is None:
        raise TypeError("the existing cluster was not looked up; preflight must do it")
    return ExistingGkeCluster(
        naming.part(parent.pulumi_resource_name, "cluster"),
        ExistingGkeClusterArgs(
            cluster_name=found.name,
            project=platform.project,
            location=platform.location,
            host=found.host,
            certificate_authority=found.certificate_authority,
            nodes_of=name,
        ),
        opts=pulumi.ResourceOptions(parent=parent),
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
