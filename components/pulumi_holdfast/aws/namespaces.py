"""Creates the training namespaces of an AWS stack, each with access to its own checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.aws.checkpoints import CheckpointAccess, CheckpointAccessArgs
from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.cluster_services import make_training_namespace
from pulumi_holdfast.kubernetes.namespace_roles import NamespaceRoles, NamespaceRolesArgs
from pulumi_holdfast.kubernetes.other_clusters.accepted_clusters import users_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input

    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.aws.stores import Store
    from pulumi_holdfast.kubernetes.other_clusters.exported_tiers import OtherStacks
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary


def make_namespaces(
    platform: AwsPlatform,
    *,
    cluster: str,
    cluster_name: str,
    stores: Mapping[str, Store],
    pools: Mapping[str, PoolSummary],
    others: OtherStacks,
    accepted: Mapping[str, Sequence[Input[str]]],
    after: pulumi.ResourceOptions,
) -> Mapping[str, Input[str]]:
    """Create every training namespace of `cluster`, by its logical name, with access to its store, and return the identities of their jobs by namespace.

    Each depends on the resources in `after` and on its identity. A pod gets its credentials at admission, so the identity must
    exist before the first pod. `accepted` are the users here of the controllers of other clusters, by the names of those clusters.
    """
    identities: dict[str, Input[str]] = {}
    for namespace in platform.namespaces:
        store = stores[namespace.name]
        access = CheckpointAccess(
            naming.checkpoint_access(cluster, namespace.name),
            CheckpointAccessArgs(
                cluster_name=cluster_name,
                namespace=namespace.name,
                bucket_arn=store.bucket_arn,
                prefix=store.prefix,
                key_arn=store.key_arn,
            ),
            opts=after,
        )
        identities[namespace.name] = access.role_arn
        made = make_training_namespace(
            namespace,
            cluster=cluster,
            checkpoint_uri=store.uri,
            pools=pools,
            others=others,
            accepted=users_in(namespace.name, platform.accepts_from, accepted),
            opts=pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[access])),
        )
        roles = sorted({entry.role for entry in platform.access if namespace.name in entry.namespaces})
        if roles:
            NamespaceRoles(
                naming.namespace_roles(cluster, namespace.name),
                NamespaceRolesArgs(namespace=namespace.name, roles=roles),
                # Its objects are deleted with the namespace.
                opts=pulumi.ResourceOptions.merge(
                    after, pulumi.ResourceOptions(depends_on=[made], deleted_with=made)
                ),
            )
    return identities
