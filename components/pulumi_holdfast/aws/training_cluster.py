"""Composes an AWS stack: account checks, network, cluster, Karpenter, pools, services, training namespaces.

`depends_on`, read backwards, is the order of `pulumi destroy`. Training namespaces go while KubeRay and JobSet still
remove their finalizers, and the fallback controller when no job is left to move. Pools go while Karpenter still deletes
their nodes, operators and Karpenter while they have system nodes and identities. The network goes last, because nodes
drain through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_holdfast.aws.checkpoints import CheckpointBucket, CheckpointBucketArgs
from pulumi_holdfast.aws.cluster import cluster_of, kubernetes_version
from pulumi_holdfast.aws.control_plane.access import (
    GroupMembers,
    GroupMembersArgs,
    NodeAccess,
    NodeAccessArgs,
)
from pulumi_holdfast.aws.control_plane.storage_class import DefaultStorageClass
from pulumi_holdfast.aws.control_plane.trusted_issuer import TrustedIssuer, TrustedIssuerArgs
from pulumi_holdfast.aws.iam import restrict_roles
from pulumi_holdfast.aws.identities import Place
from pulumi_holdfast.aws.karpenter.component import METRICS_ADDRESS, EksKarpenter, EksKarpenterArgs
from pulumi_holdfast.aws.namespaces import make_namespaces
from pulumi_holdfast.aws.pools import PoolDependencies, make_pools, pool_summaries
from pulumi_holdfast.aws.preflight import check_account
from pulumi_holdfast.aws.preflight.checks import CHECKPOINTS, keeps_checkpoint_key
from pulumi_holdfast.aws.pull_through_cache import CachedRegistry, PullThroughCache, PullThroughCacheArgs
from pulumi_holdfast.aws.spot_service_linked_role import SpotServiceLinkedRole, SpotServiceLinkedRoleArgs
from pulumi_holdfast.aws.stack_network import network_of
from pulumi_holdfast.aws.stores import stores_of
from pulumi_holdfast.config import naming, versions
from pulumi_holdfast.config.paths import chart_source
from pulumi_holdfast.kubernetes import labels
from pulumi_holdfast.kubernetes.admission.rules import eks_rules, karpenter_rules
from pulumi_holdfast.kubernetes.cluster_services import AdmissionPlan, ClusterServices
from pulumi_holdfast.kubernetes.fallback_controller.transfer_policy import account_from
from pulumi_holdfast.kubernetes.namespace_permissions import group_of
from pulumi_holdfast.kubernetes.other_clusters.accepted_clusters import all_users
from pulumi_holdfast.kubernetes.other_clusters.connections import other_clusters, server_of
from pulumi_holdfast.kubernetes.other_clusters.exported_tiers import OtherStacks
from pulumi_holdfast.kubernetes.outputs import export_outputs

if TYPE_CHECKING:
    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.aws.control_plane.access import Caller
    from pulumi_holdfast.aws.preflight import Account


def compose(platform: AwsPlatform, stack: str, caller: Caller) -> None:
    """Register every resource of an AWS stack.

    `caller` gets tokens for the cluster. Raises ConfigError, before anything is
    registered, if the account cannot hold the stack.
    """
    account = check_account(platform, stack)
    tags = labels.stack_labels(stack)
    labels.label_kubernetes_objects(tags)
    labels.tag_aws_resources(tags)
    restrict_roles(platform.iam.permissions_boundary, platform.iam.path)
    name = platform.existing_cluster or naming.cluster(stack)
    charts, images = chart_source(platform.mirror.charts), platform.mirror.images

    network = network_of(platform, account, name)
    cluster = cluster_of(platform, account, network, name, tags=tags, caller=caller)
    services = ClusterServices(
        cluster=cluster,
        kubernetes=cluster.kubernetes,
        charts=charts,
        images=images,
        karpenter_metrics=METRICS_ADDRESS,
    )

    karpenter = EksKarpenter(
        "karpenter",
        EksKarpenterArgs(
            cluster_name=name,
            account=account.id,
            region=platform.region,
            partition=platform.partition,
            charts=charts,
            images=images,
            version=versions.KARPENTER,
            image_digest=versions.KARPENTER_IMAGE_DIGEST,
            isolated=platform.network.isolated,
            role_path=platform.iam.path,
        ),
        opts=services.after(),
    )
    node_access = NodeAccess(
        "node-access",
        NodeAccessArgs(cluster_name=name, role_arn=karpenter.node_role_arn),
        opts=services.after(),
    )
    spot_role = SpotServiceLinkedRole("spot-role", SpotServiceLinkedRoleArgs(existing_arn=account.spot_role))
    caches = _pull_through_cache(platform, account, karpenter)
    device_plugins = services.device_plugins(region=platform.region, efa=platform.has_efa)
    if platform.existing_cluster is None:
        DefaultStorageClass("storage", opts=services.after())
    operators = services.operators()
    pools = make_pools(
        platform,
        PoolDependencies(
            cluster_name=name,
            security_group_id=cluster.cluster_security_group_id,
            network=network,
            karpenter=karpenter,
            tags=tags,
        ),
        after=services.after(karpenter, node_access, spot_role, device_plugins, operators, *caches),
    )
    others = other_clusters(platform.clusters, issuer=cluster.workload_identity_issuer)
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
    checkpoints = CheckpointBucket(
        CHECKPOINTS,
        CheckpointBucketArgs(
            namespaces=[namespace.name for namespace in platform.namespaces],
            retain_days=platform.checkpoints.retain_days,
            kms=platform.checkpoints.kms,
            keeps_key=keeps_checkpoint_key(platform, account),
            protected=platform.protected,
        ),
    )
    for each in platform.accepts_from:
        TrustedIssuer(
            naming.trusted_issuer(each.name),
            TrustedIssuerArgs(
                cluster_name=name,
                cluster=each.name,
                issuer=each.issuer,
                audience=cluster.kubeconfig.apply(server_of),
            ),
            opts=services.after(),
        )
    members = GroupMembers(
        "access",
        GroupMembersArgs(
            cluster_name=name,
            groups={
                entry.principal: [group_of(namespace, entry.role) for namespace in entry.namespaces]
                for entry in platform.access
            },
        ),
        opts=services.after(),
    )
    summaries = pool_summaries(platform)
    stores = stores_of(platform, account.id, checkpoints)
    identities = make_namespaces(
        platform,
        cluster_name=name,
        stores=stores,
        pools=summaries,
        others=OtherStacks(references=others.references, region=platform.region),
        accepted=users,
        after=services.after(operators, *pools, *prerequisites, checkpoints, members),
    )
    export_outputs(
        platform.scheduling_pools(),
        platform.namespaces,
        facts=summaries,
        region=platform.region,
        isolated=platform.network.isolated,
        cluster=cluster.cluster_name,
        kubeconfig=cluster.kubeconfig,
        issuer=cluster.workload_identity_issuer,
        checkpoints=checkpoints.bucket_name,
        checkpoint_uris={each: store.uri for each, store in stores.items()},
        checkpoint_keys={each: store.key_arn for each, store in stores.items() if store.key_arn is not None},
        identities=identities,
        pull_through_cache={
            prefix: address for cache in caches for prefix, address in cache.addresses.items()
        },
    )


def _pull_through_cache(
    platform: AwsPlatform, account: Account, karpenter: EksKarpenter
) -> tuple[PullThroughCache, ...]:
    """The pull through caches, for Karpenter's nodes: jobs run on no others. None without upstream registries."""
    if not platform.pull_through_cache:
        return ()
    cache = PullThroughCache(
        "pull-through-cache",
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
    )
    return (cache,)
