"""Creates the training namespaces of an AWS stack, each with access to its own checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from holdfast.components.checkpoints.s3 import CheckpointAccess, CheckpointAccessArgs
from holdfast.components.fallback_controller.transfer_policy import account_from
from holdfast.components.namespace_roles import NamespaceRoles, NamespaceRolesArgs
from holdfast.infra import naming
from holdfast.infra.aws.pools import pool_summaries
from holdfast.infra.cluster_services import make_training_namespace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi import Input

    from holdfast.components.checkpoints.s3 import CheckpointBucket
    from holdfast.infra.aws.config.stack import AwsPlatform


def make_namespaces(
    platform: AwsPlatform,
    *,
    cluster_name: str,
    checkpoints: CheckpointBucket,
    after: pulumi.ResourceOptions,
) -> Mapping[str, Input[str]]:
    """Create every training namespace, and return the identities of their jobs by namespace; each depends on the resources in `after` and on its identity.

    A pod gets its credentials at admission, so the identity must exist before the first pod.
    """
    pools = pool_summaries(platform)
    identities: dict[str, Input[str]] = {}
    for namespace in platform.namespaces:
        access = CheckpointAccess(
            naming.checkpoint_access(namespace.name),
            CheckpointAccessArgs(
                cluster_name=cluster_name,
                namespace=namespace.name,
                bucket_arn=checkpoints.bucket_arn,
                prefix=checkpoints.prefix(namespace.name),
                key_arn=checkpoints.key_arn,
            ),
            opts=after,
        )
        identities[namespace.name] = access.role_arn
        made = make_training_namespace(
            namespace,
            checkpoint_uri=checkpoints.uri(namespace.name),
            pools=pools,
            accepted=[
                account_from(each.name) for each in platform.accepts_from if namespace.name in each.namespaces
            ],
            opts=pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[access])),
        )
        roles = sorted({entry.role for entry in platform.access if namespace.name in entry.namespaces})
        if roles:
            NamespaceRoles(
                naming.namespace_roles(namespace.name),
                NamespaceRolesArgs(namespace=namespace.name, roles=roles),
                # Its objects are deleted with the namespace.
                opts=pulumi.ResourceOptions.merge(
                    after, pulumi.ResourceOptions(depends_on=[made], deleted_with=made)
                ),
            )
    return identities
