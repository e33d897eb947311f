"""The training namespaces of an Azure stack, each with its way to its own checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from holdfast.components.checkpoints.blob import CLIENT_ID, CheckpointAccess, CheckpointAccessArgs
from holdfast.components.training_namespace import TrainingNamespace, TrainingNamespaceArgs
from holdfast.infra import naming
from holdfast.infra.azure.pools import pool_facts_of

if TYPE_CHECKING:
    from holdfast.components.checkpoints.blob import CheckpointBucket
    from holdfast.components.cluster.aks.component import AksCluster
    from holdfast.infra.azure.config.stack import AzurePlatform
    from holdfast.infra.azure.preflight import Subscription


def make_namespaces(
    platform: AzurePlatform,
    subscription: Subscription,
    *,
    cluster: AksCluster,
    checkpoints: CheckpointBucket,
    after: pulumi.ResourceOptions,
) -> None:
    """Make every training namespace, each after what `after` names and after its identity."""
    pools = pool_facts_of(platform)
    for namespace in platform.namespaces:
        access = CheckpointAccess(
            naming.checkpoint_access(namespace.name),
            CheckpointAccessArgs(
                resource_group=cluster.resource_group,
                location=platform.location,
                subscription_id=subscription.subscription_id,
                oidc_issuer=cluster.workload_identity_issuer,
                namespace=namespace.name,
                container_id=checkpoints.container_id(namespace.name),
            ),
            opts=after,
        )
        TrainingNamespace(
            naming.training_namespace(namespace.name),
            TrainingNamespaceArgs(
                namespace=namespace.name,
                ladder=namespace.as_ladder(),
                checkpoint_uri=checkpoints.uri(namespace.name),
                identity={CLIENT_ID: access.client_id},
                pools=pools,
                shapes=namespace.as_shapes(),
                quota=namespace.as_quota(pools),
            ),
            opts=pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[access])),
        )
