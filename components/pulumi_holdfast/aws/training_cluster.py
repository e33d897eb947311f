"""A training cluster on AWS: account checks, network, cluster, Karpenter, pools, services, training namespaces.

`depends_on`, read backwards, is the order of `pulumi destroy`. Training namespaces go while KubeRay and JobSet still
remove their finalizers, and the fallback controller when no job is left to move. Pools go while Karpenter still deletes
their nodes, operators and Karpenter while they have system nodes and identities. The network goes last, because nodes
drain through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.aws.checkpoints import CheckpointBucket, CheckpointBucketArgs, stores_of
from pulumi_holdfast.aws.config.sections import AwsExistingCluster, AwsNewNetwork
from pulumi_holdfast.aws.control_plane.access import (
    GroupMembers,
    GroupMembersArgs,
    NodeAccess,
    NodeAccessArgs,
    TrustedIssuer,
    TrustedIssuerArgs,
)
from pulumi_holdfast.aws.control_plane.addon_versions import addon_versions
from pulumi_holdfast.aws.control_plane.addons import default_storage_class
from pulumi_holdfast.aws.control_plane.component import (
    EksCluster,
    EksClusterArgs,
    ExistingEksCluster,
    ExistingEksClusterArgs,
)
from pulumi_holdfast.aws.control_plane.control_plane import ControlPlaneLogs
from pulumi_holdfast.aws.control_plane.system_nodes import SystemNodesArgs
from pulumi_holdfast.aws.identities import make_namespaces, role_limits
from pulumi_holdfast.aws.karpenter.component import METRICS_ADDRESS, EksKarpenter, EksKarpenterArgs
from pulumi_holdfast.aws.karpenter.iam_roles import spot_service_linked_role
from pulumi_holdfast.aws.network import network_of
from pulumi_holdfast.aws.policy_documents import Place
from pulumi_holdfast.aws.pools import PoolDependencies, make_pools, pool_summaries
from pulumi_holdfast.aws.preflight.checks import keeps_checkpoint_key
from pulumi_holdfast.aws.preflight.queries import check_account
from pulumi_holdfast.aws.pull_through_cache import CachedRegistry, PullThroughCache, PullThroughCacheArgs
from pulumi_holdfast.config import naming, versions
from pulumi_holdfast.config.loader import chart_source
from pulumi_holdfast.kubernetes import labels
from pulumi_holdfast.kubernetes.admission.rules import eks_rules, karpenter_rules
from pulumi_holdfast.kubernetes.cluster_services import AdmissionPlan, ClusterServices, check_fallback
from pulumi_holdfast.kubernetes.fallback_controller.transfer_policy import account_from
from pulumi_holdfast.kubernetes.job_metrics import EKS_METRICS
from pulumi_holdfast.kubernetes.namespace_roles import group_of
from pulumi_holdfast.kubernetes.other_clusters import OtherStacks, all_users, other_clusters, server_of
from pulumi_holdfast.kubernetes.outputs import ClusterOutputs
from pulumi_holdfast.kubernetes.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.aws.control_plane.access import Caller
    from pulumi_holdfast.aws.network import Network
    from pulumi_holdfast.aws.preflight.checks import Account
    from pulumi_holdfast.aws.preflight.existing_cluster import ExistingEks


@dataclass(frozen=True, kw_only=True)
class TrainingClusterArgs:
    """`platform` is the parsed configuration. `caller` gets tokens for the cluster.

    `environment` is in the names, labels and tags of the cluster: no other cluster of the account has it.
    """

    platform: AwsPlatform
    environment: str
    caller: Caller


class TrainingCluster(pulumi.ComponentResource):
    """A training cluster on AWS, with everything that it needs (`holdfast:aws:TrainingCluster`).

    `kubernetes` is the provider of its API server. Raises ConfigError, before any of its parts is registered, if jobs of the
    configuration cannot fall back, or if the account cannot hold the cluster.
    """

    kubernetes: pulumi.ProviderResource
    outputs: ClusterOutputs

    def __init__(
        self, name: str, args: TrainingClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        platform, environment, caller = args.platform, args.environment, args.caller
        summaries = pool_summaries(platform)
        check_fallback(platform, summaries, cloud=platform.cloud)
        own = labels.stack_labels(environment)
        tags = {**platform.tags, **own}
        options = labels.with_transformations(
            opts,
            labels.kubernetes_labels(own),
            labels.aws_tags(tags),
            role_limits(platform.iam.permissions_boundary, platform.iam.path),
        )
        super().__init__("holdfast:aws:TrainingCluster", name, None, options)
        account = check_account(platform, environment, parent=self)
        cluster_name = platform.existing_cluster or naming.cluster(environment)
        charts, images = chart_source(platform.mirror.charts), platform.mirror.images
        inside = pulumi.ResourceOptions(parent=self)

        network = network_of(platform, account, cluster_name, parent=self)
        cluster = cluster_of(platform, account, network, cluster_name, tags=tags, caller=caller, parent=self)
        self.kubernetes = cluster.kubernetes
        services = ClusterServices(
            parent=self,
            cluster=cluster,
            kubernetes=cluster.kubernetes,
            charts=charts,
            images=images,
            karpenter_metrics=METRICS_ADDRESS,
            scrapers=platform.fallback.monitoring.scrapers,
            metrics=EKS_METRICS,
        )

        karpenter = EksKarpenter(
            naming.part(name, "karpenter"),
            EksKarpenterArgs(
                cluster_name=cluster_name,
                account=account.id,
                region=platform.region,
                partition=platform.partition,
                charts=charts,
                images=images,
                version=versions.KARPENTER,
                image_digest=versions.KARPENTER_IMAGE_DIGEST,
                isolated=platform.network.isolated,
                node_repair=platform.nodes.repair,
                role_path=platform.iam.path,
                scrapers=services.scrapers,
            ),
            opts=services.after(),
        )
        node_access = NodeAccess(
            naming.part(name, "node-access"),
            NodeAccessArgs(cluster_name=cluster_name, role_arn=karpenter.node_role_arn),
            opts=services.after(),
        )
        spot_role = spot_service_linked_role(
            naming.part(name, "spot-role"), account=account.id, existing_arn=account.spot_role, opts=inside
        )
        caches = _pull_through_cache(platform, account, karpenter, parent=self)
        device_plugins = services.device_plugins(region=platform.region, efa=platform.has_efa)
        if platform.existing_cluster is None:
            default_storage_class(naming.part(name, "storage"), opts=services.after())
        operators = services.operators(platform.namespaces)
        pools = make_pools(
            platform,
            PoolDependencies(
                parent=self,
                cluster_name=cluster_name,
                security_group_id=cluster.cluster_security_group_id,
                network=network,
                karpenter=karpenter,
                tags=tags,
                image=platform.nodes.image,
                block_storage=platform.existing_cluster is None,
            ),
            after=services.after(karpenter, node_access, spot_role, device_plugins, operators, *caches),
        )
        others = other_clusters(platform.clusters, issuer=cluster.workload_identity_issuer, parent=self)
        users = {each.name: [account_from(each.name)] for each in platform.accepts_from}
        prerequisites = services.admission_and_fallback(
            platform.fallback,
            AdmissionPlan(
                kubernetes_version=kubernetes_version(platform, account),
                pools=platform.scheduling_pools(),
                pod_rules=karpenter_rules(platform.scheduling_pools()),
                other_rules=eks_rules(efa=platform.has_efa),
            ),
            pools=pools,
            clusters=others.connections,
            accepted=all_users(users),
        )
        if platform.keeps_job_metrics:
            # Here, because other stacks need not load the SDK's module of this service.
            from pulumi_holdfast.aws.managed_prometheus import ManagedPrometheus, ManagedPrometheusArgs

            place = Place(account=account.id, region=platform.region, partition=platform.partition)
            ManagedPrometheus(
                naming.part(name, "prometheus"),
                ManagedPrometheusArgs(
                    cluster_name=cluster_name,
                    cluster_arn=place.cluster(cluster_name),
                    subnet_ids=network.private_subnet_ids,
                    security_group_id=cluster.cluster_security_group_id,
                ),
                opts=services.after(),
            )
        checkpoints = CheckpointBucket(
            account.checkpoints,
            CheckpointBucketArgs(
                namespaces=[namespace.name for namespace in platform.namespaces],
                retain_days=platform.checkpoints.retain_days,
                kms=platform.checkpoints.kms,
                keeps_key=keeps_checkpoint_key(platform, account),
                protected=platform.protected,
            ),
            opts=inside,
        )
        for each in platform.accepts_from:
            TrustedIssuer(
                naming.trusted_issuer(name, each.name),
                TrustedIssuerArgs(
                    cluster_name=cluster_name,
                    cluster=each.name,
                    issuer=each.issuer,
                    audience=cluster.kubeconfig.apply(server_of),
                ),
                opts=services.after(),
            )
        members = GroupMembers(
            naming.part(name, "access"),
            GroupMembersArgs(
                cluster_name=cluster_name,
                groups={
                    entry.principal: [group_of(namespace, entry.role) for namespace in entry.namespaces]
                    for entry in platform.access
                },
            ),
            opts=services.after(),
        )
        stores = stores_of(platform, account.id, checkpoints, parent=self)
        storage = _storage(platform, account, network, cluster, services, parent=self)
        identities = make_namespaces(
            platform,
            cluster=name,
            cluster_name=cluster_name,
            stores=stores,
            pools=summaries,
            others=OtherStacks(references=others.references, region=platform.region),
            accepted=users,
            storage=storage,
            after=services.after(operators, *pools, *prerequisites, checkpoints, members, *storage.resources),
        )
        self.outputs = ClusterOutputs(
            pools=platform.scheduling_pools(),
            namespaces=platform.namespaces,
            facts=summaries,
            region=platform.region,
            isolated=platform.network.isolated,
            cluster=cluster.cluster_name,
            kubeconfig=cluster.kubeconfig,
            issuer=cluster.workload_identity_issuer,
            checkpoints=checkpoints.bucket_names,
            checkpoint_uris={each: store.uri for each, store in stores.items()},
            checkpoint_keys={
                each: store.key_arn for each, store in stores.items() if store.key_arn is not None
            },
            identities=identities,
            pull_through_cache={
                prefix: address for cache in caches for prefix, address in cache.addresses.items()
            },
        )
        self.register_outputs(self.outputs.by_name())


def _storage(
    platform: AwsPlatform,
    account: Account,
    network: Network,
    cluster: EksCluster | ExistingEksCluster,
    services: ClusterServices,
    *,
    parent: pulumi.Resource,
) -> Storage:
    """The volumes of data. Without any, nothing is imported: their services take as long to import as all the others."""
    if not platform.storage:
        return Storage()
    from pulumi_holdfast.aws.storage import make_storage

    return make_storage(
        platform,
        account,
        network,
        cluster_name=cluster.cluster_name,
        nodes=cluster.cluster_security_group_id,
        after=services.after(),
        parent=parent,
    )


def _pull_through_cache(
    platform: AwsPlatform, account: Account, karpenter: EksKarpenter, *, parent: pulumi.Resource
) -> tuple[PullThroughCache, ...]:
    """The pull through caches, for Karpenter's nodes: jobs run on no others. None without upstream registries."""
    if not platform.pull_through_cache:
        return ()
    cache = PullThroughCache(
        naming.part(parent.pulumi_resource_name, "pull-through-cache"),
        PullThroughCacheArgs(
            place=Place(account=account.id, region=platform.region, partition=platform.partition),
            registries=[
                CachedRegistry(
                    prefix=entry.prefix, upstream=entry.upstream, credential_arn=entry.credential_arn
                )
                for entry in platform.pull_through_cache
            ],
            node_role=karpenter.node_role_name,
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    return (cache,)


def cluster_of(
    platform: AwsPlatform,
    account: Account,
    network: Network,
    name: str,
    *,
    tags: Mapping[str, str],
    caller: Caller,
    parent: pulumi.Resource,
) -> EksCluster | ExistingEksCluster:
    """The control plane of the training cluster `parent`; `name` is its physical name, `tags` are those of its system nodes."""
    config = platform.cluster
    if account.cluster is not None:
        return existing_cluster_of(account.cluster, platform.region, caller, parent=parent)
    if isinstance(config, AwsExistingCluster):
        raise TypeError(f"{config.existing} was not looked up; preflight must do it")
    addons = addon_versions(config.version, config.addons)
    if addons is None:
        raise ValueError(f"Kubernetes {config.version} has no pinned add-ons; validation must reject it")
    return EksCluster(
        naming.part(parent.pulumi_resource_name, "cluster"),
        EksClusterArgs(
            cluster_name=name,
            version=config.version,
            account=account.id,
            region=platform.region,
            partition=platform.partition,
            private_subnet_ids=network.private_subnet_ids,
            system_nodes=SystemNodesArgs(
                instance_types=config.system_nodes.types(platform.region),
                count=config.system_nodes.count,
                architecture=platform.system_machines()[0].arch,
                release_version=platform.nodes.image,
                repair=platform.nodes.repair,
                tags=tags,
            ),
            addons=addons,
            protected=platform.protected,
            public_access_cidrs=config.public_access_cidrs,
            private_access_cidrs=config.private_access_cidrs or _own_cidr(platform),
            admins=config.admins,
            service_cidr=config.service_cidr,
            logs=ControlPlaneLogs(
                types=tuple(config.logs.types),
                retention_days=config.logs.retain_days,
                group_exists=account.existing.log_group,
            ),
            secrets_key=config.secrets_key,
            upgrade_policy=config.upgrade_policy.value.upper(),
            caller=caller,
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def existing_cluster_of(
    found: ExistingEks, region: str, caller: Caller, *, parent: pulumi.Resource
) -> ExistingEksCluster:
    """The cluster that preflight found, as the components use it."""
    return ExistingEksCluster(
        naming.part(parent.pulumi_resource_name, "cluster"),
        ExistingEksClusterArgs(
            cluster_name=found.name,
            region=region,
            endpoint=found.endpoint,
            certificate_authority=found.certificate_authority,
            issuer=found.issuer,
            security_group_id=found.security_group_id,
            caller=caller,
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def kubernetes_version(platform: AwsPlatform, account: Account) -> str:
    """The version of the cluster: as configured, or as the existing cluster has it."""
    config = platform.cluster
    if isinstance(config, AwsExistingCluster):
        return account.cluster.version if account.cluster is not None else ""
    return config.version


def _own_cidr(platform: AwsPlatform) -> tuple[str, ...]:
    """The block of the stack's own network, whose clients reach the private endpoint by default."""
    network = platform.network
    return (network.cidr,) if isinstance(network, AwsNewNetwork) else ()
