"""Creates the training namespaces of an Azure stack, each with access to its own checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.azure.checkpoints import CLIENT_ID, CheckpointAccess, CheckpointAccessArgs
from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.cluster_services import Identity, make_training_namespace
from pulumi_holdfast.kubernetes.other_clusters.accepted_clusters import users_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input

    from pulumi_holdfast.azure.config.sections import AzurePlatform
    from pulumi_holdfast.azure.stores import Store
    from pulumi_holdfast.kubernetes.other_clusters.exported_tiers import OtherStacks
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary


def make_namespaces(
    platform: AzurePlatform,
    *,
    cluster: str,
    resource_group: Input[str],
    oidc_issuer: Input[str],
    stores: Mapping[str, Store],
    pools: Mapping[str, PoolSummary],
    others: OtherStacks,
    accepted: Mapping[str, Sequence[Input[str]]],
    after: pulumi.ResourceOptions,
) -> Mapping[str, Input[str]]:
    """Create every training namespace of `cluster`, by its logical name, with access to its store, and return the identities of their jobs by namespace.

    Each depends on the resources in `after` and on its identity. The identities are created in `resource_group`; `oidc_issuer`
    is that of the cluster's service account tokens. `accepted` are the users here of the controllers of other clusters, by the names of
    those clusters.
    """
    identities: dict[str, Input[str]] = {}
    for namespace in platform.namespaces:
        store = stores[namespace.name]
        access = CheckpointAccess(
            naming.checkpoint_access(cluster, namespace.name),
            CheckpointAccessArgs(
                resource_group=resource_group,
                location=platform.location,
                subscription_id=store.subscription_id,
                oidc_issuer=oidc_issuer,
                namespace=namespace.name,
                container_id=store.container_id,
            ),
            opts=after,
        )
        identities[namespace.name] = access.client_id
        make_training_namespace(
            namespace,
            cluster=cluster,
            checkpoint_uri=store.uri,
            pools=pools,
            others=others,
            accepted=users_in(namespace.name, platform.accepts_from, accepted),
            identity=Identity(annotations={CLIENT_ID: access.client_id}),
            opts=pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[access])),
        )
    return identities
