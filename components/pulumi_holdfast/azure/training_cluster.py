"""A training cluster on Azure: subscription checks, network, cluster, pools, services, training namespaces.

`depends_on`, read backwards, is the order of `pulumi destroy`. Training namespaces go while KubeRay and JobSet still
remove their finalizers, and the fallback controller when no job is left to move. Then pools go while AKS still deletes
their nodes, and operators while they have system nodes. The role assignments that give Pulumi access go after the last
object, and the network goes last, because nodes drain through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pulumi
from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_azure_native.resources import ResourceGroup

from pulumi_holdfast.azure.checkpoints import (
    CheckpointBucket,
    CheckpointBucketArgs,
    CustomerKey,
    stores_of,
    zone_of,
)
from pulumi_holdfast.azure.config.sections import AzureExistingCluster, AzurePlatform, zones_here
from pulumi_holdfast.azure.control_plane.access import (
    PrivateAccess,
    PublicAccess,
    TrustedIssuer,
    TrustedIssuerArgs,
)
from pulumi_holdfast.azure.control_plane.component import (
    AksCluster,
    AksClusterArgs,
    ExistingAksCluster,
    ExistingAksClusterArgs,
)
from pulumi_holdfast.azure.control_plane.control_plane import (
    Maintenance,
    NoUpgrades,
    SystemNodesArgs,
    Upgrades,
)
from pulumi_holdfast.azure.identities import make_namespaces
from pulumi_holdfast.azure.network import network_of
from pulumi_holdfast.azure.pools import PoolDependencies, make_pools, pool_summaries
from pulumi_holdfast.azure.preflight.queries import check_subscription
from pulumi_holdfast.config import naming
from pulumi_holdfast.config.loader import chart_source
from pulumi_holdfast.config.naming import aks_node_group, part
from pulumi_holdfast.config.storage import VolumeKind
from pulumi_holdfast.kubernetes import labels
from pulumi_holdfast.kubernetes.admission.rules import aks_rules, workload_identity_rule
from pulumi_holdfast.kubernetes.cluster_services import AdmissionPlan, ClusterServices, check_fallback
from pulumi_holdfast.kubernetes.job_metrics import AKS_METRICS
from pulumi_holdfast.kubernetes.kubernetes_object import tied_to
from pulumi_holdfast.kubernetes.other_clusters import OtherStacks, all_users, other_clusters
from pulumi_holdfast.kubernetes.outputs import ClusterOutputs
from pulumi_holdfast.kubernetes.storage import Storage
from pulumi_holdfast.kubernetes.training_namespace import SERVICE_ACCOUNT

if TYPE_CHECKING:
    from pulumi_holdfast.azure.config.sections import AzureAccess, AzureMaintenance
    from pulumi_holdfast.azure.control_plane.access import ApiServerAccess
    from pulumi_holdfast.azure.control_plane.control_plane import Day
    from pulumi_holdfast.azure.preflight.checks import Subscription


@dataclass(frozen=True, kw_only=True)
class TrainingClusterArgs:
    """`platform` is the parsed configuration.

    `environment` is in the names and labels of the cluster: no other cluster of the subscription has it.
    """

    platform: AzurePlatform
    environment: str


class TrainingCluster(pulumi.ComponentResource):
    """A training cluster on Azure, with everything that it needs (`holdfast:azure:TrainingCluster`).

    `kubernetes` is the provider of its API server. Raises ConfigError, before any of its parts is registered, if jobs of the
    configuration cannot fall back, or if the subscription cannot hold the cluster.
    """

    kubernetes: pulumi.ProviderResource
    outputs: ClusterOutputs

    def __init__(
        self, name: str, args: TrainingClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        platform, environment = args.platform, args.environment
        summaries = pool_summaries(platform)
        check_fallback(platform, summaries, cloud=platform.cloud)
        tags = {**platform.tags, **labels.environment_tags(environment)}
        options = labels.with_transformations(
            opts, labels.kubernetes_labels(labels.stack_labels(environment)), labels.azure_tags(tags)
        )
        super().__init__("holdfast:azure:TrainingCluster", name, None, options)
        subscription = check_subscription(platform, environment, parent=self)
        inside = pulumi.ResourceOptions(parent=self)
        cluster_name = naming.aks_cluster_name(environment)

        group = StackResourceGroup(
            naming.part(name, "group"),
            StackResourceGroupArgs(
                group_name=cluster_name, location=platform.location, protected=platform.protected
            ),
            opts=inside,
        )
        cluster = cluster_of(platform, subscription, group.group_name, cluster_name, tags=tags, parent=self)
        self.kubernetes = cluster.kubernetes
        version = kubernetes_version(platform, subscription)
        services = ClusterServices(
            parent=self,
            cluster=cluster,
            kubernetes=cluster.kubernetes,
            charts=chart_source(platform.mirror.charts),
            images=platform.mirror.images,
            scrapers=platform.fallback.monitoring.scrapers,
            metrics=AKS_METRICS,
        )

        device_plugins = services.device_plugins(region=platform.location)
        operators = services.operators(platform.namespaces)
        pools = make_pools(
            platform,
            PoolDependencies(
                cluster_name=name,
                cluster=cluster,
                kubernetes_version=version,
                tags=tags,
                existing=subscription.pools,
            ),
            after=services.after(device_plugins, operators),
        )
        others = other_clusters(platform.clusters, issuer=cluster.workload_identity_issuer, parent=self)
        trusted = {
            each.name: TrustedIssuer(
                naming.trusted_issuer(name, each.name),
                TrustedIssuerArgs(
                    resource_group=group.group_name,
                    location=platform.location,
                    tenant_id=subscription.tenant_id,
                    issuer=each.issuer,
                ),
                opts=inside,
            )
            for each in platform.accepts_from
        }
        users = {home: issuer.users for home, issuer in trusted.items()}
        prerequisites = services.admission_and_fallback(
            platform.fallback,
            AdmissionPlan(
                kubernetes_version=version,
                pools=platform.scheduling_pools(),
                pod_rules=aks_rules(platform.scheduling_pools()),
                other_rules=[workload_identity_rule(SERVICE_ACCOUNT)],
            ),
            pools=pools,
            clusters=others.connections,
            accepted=all_users(users),
        )
        zone_id = zone_of(platform, resource_group=group.group_name, subnet_id=cluster.subnet_id, parent=self)
        checkpoints = _checkpoints(
            naming.part(name, "checkpoints"),
            platform,
            cluster.subnet_id,
            zone_id,
            containers=[namespace.name for namespace in platform.namespaces],
            protected=platform.protected,
            opts=inside,
        )
        storage = _storage(platform, cluster, group.group_name, zone_id, cluster_name, parent=self)
        stores = stores_of(
            platform,
            subscription,
            checkpoints,
            resource_group=group.group_name,
            subnet_id=cluster.subnet_id,
            zone_id=zone_id,
            parent=self,
        )
        identities = make_namespaces(
            platform,
            cluster=name,
            resource_group=group.group_name,
            oidc_issuer=cluster.workload_identity_issuer,
            stores=stores,
            pools=summaries,
            others=OtherStacks(references=others.references, region=platform.location),
            accepted=users,
            storage=storage,
            subscription_id=subscription.subscription_id,
            after=services.after(operators, *pools, *prerequisites, checkpoints, *storage.resources),
        )
        self.outputs = ClusterOutputs(
            pools=platform.scheduling_pools(),
            namespaces=platform.namespaces,
            facts=summaries,
            region=platform.location,
            cluster=cluster.cluster_name,
            kubeconfig=cluster.kubeconfig,
            issuer=cluster.workload_identity_issuer,
            checkpoints=checkpoints.account_name,
            checkpoint_uris={each: store.uri for each, store in stores.items()},
            checkpoint_account={"id": checkpoints.account_id, "tenantId": subscription.tenant_id},
            identities=identities,
            token_exchanges={each.issuer: trusted[each.name].exchange for each in platform.accepts_from},
        )
        self.register_outputs(self.outputs.by_name())


def _checkpoints(
    name: str,
    platform: AzurePlatform,
    subnet_id: Input[str],
    zone_id: Input[str] | None,
    *,
    containers: Sequence[str],
    protected: bool,
    opts: pulumi.ResourceOptions,
) -> CheckpointBucket:
    """A store as the section `checkpoints` has it, with these containers."""
    section = platform.checkpoints
    key = section.key
    return CheckpointBucket(
        name,
        CheckpointBucketArgs(
            location=platform.location,
            subnet_id=subnet_id,
            allowed_cidrs=section.allowed_cidrs,
            namespaces=containers,
            retain_days=section.retain_days,
            protected=protected,
            redundancy=section.redundancy
            or ("Standard_ZRS" if zones_here(platform.location) else "Standard_LRS"),
            key=None
            if key is None
            else CustomerKey(vault=key.vault, name=key.name, identity_id=key.identity),
            private_zone_id=None if section.private_endpoint is None else zone_id,
        ),
        opts=opts,
    )


def _storage(
    platform: AzurePlatform,
    cluster: AksCluster | ExistingAksCluster,
    resource_group: Input[str],
    zone_id: Input[str] | None,
    label: str,
    *,
    parent: pulumi.Resource,
) -> Storage:
    """The volumes of data. Without any, nothing is imported: their services take as long to import as all the others."""
    if not platform.storage:
        return Storage()
    from pulumi_holdfast.azure.storage import LustreDriverArgs, make_storage

    inside = pulumi.ResourceOptions(parent=parent)

    def bucket(name: str, containers: Sequence[str], protected: bool) -> CheckpointBucket:
        return _checkpoints(
            name,
            platform,
            cluster.subnet_id,
            zone_id,
            containers=containers,
            protected=protected,
            opts=inside,
        )

    driver = LustreDriverArgs(cluster=cluster.cluster_reference, resource_group=resource_group)
    return make_storage(
        platform,
        label=label,
        resource_group=resource_group,
        subnet_id=cluster.subnet_id,
        bucket=bucket,
        driver=driver if isinstance(cluster, AksCluster) else None,
        parent=parent,
    )


def cluster_of(
    platform: AzurePlatform,
    subscription: Subscription,
    resource_group: Input[str],
    name: str,
    *,
    tags: Mapping[str, str],
    parent: pulumi.Resource,
) -> AksCluster | ExistingAksCluster:
    """The control plane of the training cluster `parent`: a new one called `name` in its network, or the existing one.

    `tags` are those of its system nodes.
    """
    config = platform.cluster
    if isinstance(config, AzureExistingCluster):
        return _existing(config, subscription, parent)
    network, system = network_of(platform, resource_group, name, parent=parent), config.system_nodes
    return AksCluster(
        part(parent.pulumi_resource_name, "cluster"),
        AksClusterArgs(
            cluster_name=name,
            location=platform.location,
            subscription_id=subscription.subscription_id,
            tenant_id=subscription.tenant_id,
            resource_group=resource_group,
            node_resource_group=aks_node_group(name),
            version=config.version,
            scaling=config.scaling.value,
            network=network,
            access=_access(config.access),
            deployer=subscription.deployer,
            admins=config.admins,
            login=config.login.value,
            maintenance=_maintenance(config.maintenance),
            upgrades=Upgrades(cluster=config.upgrades.cluster.value, node_os=config.upgrades.node_os.value),
            system_nodes=SystemNodesArgs(
                vm_size=system.vm_size,
                count=system.count,
                zones=system.zones,
                disk_gib=system.disk_gib,
                tags=tags,
            ),
            protected=platform.protected,
            pods_cidr=platform.network.pods_cidr,
            services_cidr=platform.network.services_cidr,
            disk_encryption_set_id=config.disk_encryption_set,
            log_workspace_id=config.log_workspace,
            managed_prometheus=platform.keeps_job_metrics,
            registry_id=config.registry,
            reservation_group_ids=platform.reservation_groups,
            mounts_blobs=any(volume.kind is VolumeKind.BUCKET for volume in platform.storage),
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def _existing(
    config: AzureExistingCluster, subscription: Subscription, parent: pulumi.Resource
) -> ExistingAksCluster:
    found = subscription.cluster
    if found is None:
        raise TypeError(f"{config.existing} was not looked up; preflight must do it")
    return ExistingAksCluster(
        part(parent.pulumi_resource_name, "cluster"),
        ExistingAksClusterArgs(
            cluster_name=found.name,
            resource_group=found.resource_group,
            tenant_id=subscription.tenant_id,
            uid=found.uid,
            issuer=found.issuer,
            api_server=found.api_server,
            subnet_id=found.subnet_id,
            login=config.login.value,
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def kubernetes_version(platform: AzurePlatform, subscription: Subscription) -> str:
    """The version of the cluster: as configured, or as the existing cluster has it."""
    config = platform.cluster
    if isinstance(config, AzureExistingCluster):
        return subscription.cluster.version if subscription.cluster is not None else ""
    return config.version


def _access(config: AzureAccess) -> ApiServerAccess:
    if config.public is not None:
        return PublicAccess(cidrs=config.public.cidrs)
    return PrivateAccess(public_name=config.public_name)


def _maintenance(config: AzureMaintenance) -> Maintenance:
    window = config.window
    return Maintenance(
        day=cast("Day", window.day.value.capitalize()),
        start=window.start,
        hours=window.hours,
        start_date=window.start_date,
        every_weeks=window.every_weeks,
        exclusions=[NoUpgrades(start=each.start, end=each.end) for each in config.exclusions],
    )


@dataclass(frozen=True, kw_only=True)
class StackResourceGroupArgs:
    """The group's name and location. If `protected`, the group cannot be deleted."""

    group_name: str
    location: str
    protected: bool
    tags: Mapping[str, str] | None = None


class StackResourceGroup(ComponentResource):
    """The stack's own resource group (`holdfast:index:StackResourceGroup`).

    Creates the group. `group_name` is known on preview; resources that use it are created after the group and
    deleted before it.
    """

    group_name: Output[str]

    def __init__(self, name: str, args: StackResourceGroupArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:StackResourceGroup", name, None, opts)
        group = ResourceGroup(
            f"{name}-group",
            resource_group_name=args.group_name,
            location=args.location,
            tags=args.tags,
            opts=ResourceOptions(parent=self, protect=True if args.protected else None),
        )
        self.group_name = tied_to(Output.from_input(args.group_name), [group])
        self.register_outputs({"group_name": self.group_name})
