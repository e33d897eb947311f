"""Composes an Azure stack: subscription checks, network, cluster, pools, services, training namespaces.

`depends_on`, read backwards, is the order of `pulumi destroy`. Training namespaces go while KubeRay and JobSet still
remove their finalizers, and the fallback controller when no job is left to move. Then pools go while AKS still deletes
their nodes, and operators while they have system nodes. The role assignments that give Pulumi access go after the last
object, and the network goes last, because nodes drain through it.
"""

from __future__ import annotations

from pulumi import Input

from pulumi_holdfast.azure.checkpoints import CheckpointBucket, CheckpointBucketArgs, CustomerKey
from pulumi_holdfast.azure.cluster import cluster_of, kubernetes_version
from pulumi_holdfast.azure.config.sections import AzurePlatform
from pulumi_holdfast.azure.control_plane.trusted_issuer import TrustedIssuer, TrustedIssuerArgs
from pulumi_holdfast.azure.namespaces import make_namespaces
from pulumi_holdfast.azure.pools import PoolDependencies, make_pools, pool_summaries
from pulumi_holdfast.azure.preflight import check_subscription
from pulumi_holdfast.azure.resource_group import StackResourceGroup, StackResourceGroupArgs
from pulumi_holdfast.azure.stores import stores_of, zone_of
from pulumi_holdfast.config import naming
from pulumi_holdfast.config.paths import chart_source
from pulumi_holdfast.kubernetes import labels
from pulumi_holdfast.kubernetes.admission.rules import aks_rules, workload_identity_rule
from pulumi_holdfast.kubernetes.cluster_services import AdmissionPlan, ClusterServices
from pulumi_holdfast.kubernetes.other_clusters.accepted_clusters import all_users
from pulumi_holdfast.kubernetes.other_clusters.connections import other_clusters
from pulumi_holdfast.kubernetes.other_clusters.exported_tiers import OtherStacks
from pulumi_holdfast.kubernetes.outputs import export_outputs
from pulumi_holdfast.kubernetes.training_namespace import SERVICE_ACCOUNT


def compose(platform: AzurePlatform, stack: str) -> None:
    """Register every resource of an Azure stack.

    Raises ConfigError, before anything is registered, if the subscription cannot hold the stack.
    """
    subscription = check_subscription(platform, stack)
    labels.label_kubernetes_objects(labels.stack_labels(stack))
    tags = labels.azure_tags(stack)
    labels.tag_azure_resources(tags)
    name = naming.aks_cluster_name(stack)

    group = StackResourceGroup(
        "group",
        StackResourceGroupArgs(group_name=name, location=platform.location, protected=platform.protected),
    )
    cluster = cluster_of(platform, subscription, group.group_name, name)
    version = kubernetes_version(platform, subscription)
    services = ClusterServices(
        cluster=cluster,
        kubernetes=cluster.kubernetes,
        charts=chart_source(platform.mirror.charts),
        images=platform.mirror.images,
    )

    device_plugins = services.device_plugins(region=platform.location)
    operators = services.operators()
    pools = make_pools(
        platform,
        PoolDependencies(cluster=cluster, kubernetes_version=version, tags=tags, existing=subscription.pools),
        after=services.after(device_plugins, operators),
    )
    others = other_clusters(platform.clusters, issuer=cluster.workload_identity_issuer)
    trusted = {
        each.name: TrustedIssuer(
            naming.trusted_issuer(each.name),
            TrustedIssuerArgs(
                resource_group=group.group_name,
                location=platform.location,
                tenant_id=subscription.tenant_id,
                issuer=each.issuer,
            ),
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
    zone_id = zone_of(platform, resource_group=group.group_name, subnet_id=cluster.subnet_id)
    checkpoints = _checkpoints(platform, cluster.subnet_id, zone_id)
    stores = stores_of(
        platform,
        subscription,
        checkpoints,
        resource_group=group.group_name,
        subnet_id=cluster.subnet_id,
        zone_id=zone_id,
    )
    summaries = pool_summaries(platform)
    identities = make_namespaces(
        platform,
        resource_group=group.group_name,
        oidc_issuer=cluster.workload_identity_issuer,
        stores=stores,
        pools=summaries,
        others=OtherStacks(references=others.references, region=platform.location),
        accepted=users,
        after=services.after(operators, *pools, *prerequisites, checkpoints),
    )
    export_outputs(
        platform.scheduling_pools(),
        platform.namespaces,
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


def _checkpoints(
    platform: AzurePlatform, subnet_id: Input[str], zone_id: Input[str] | None
) -> CheckpointBucket:
    section = platform.checkpoints
    key = section.key
    return CheckpointBucket(
        "checkpoints",
        CheckpointBucketArgs(
            location=platform.location,
            subnet_id=subnet_id,
            allowed_cidrs=section.allowed_cidrs,
            namespaces=[namespace.name for namespace in platform.namespaces],
            retain_days=section.retain_days,
            protected=platform.protected,
            redundancy=section.redundancy,
            key=None
            if key is None
            else CustomerKey(vault=key.vault, name=key.name, identity_id=key.identity),
            private_zone_id=None if section.private_endpoint is None else zone_id,
        ),
    )
