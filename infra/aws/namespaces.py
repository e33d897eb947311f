"""The training namespaces of an AWS stack, each with its way to its own checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from holdfast.components.checkpoints.s3 import CheckpointAccess, CheckpointAccessArgs
from holdfast.components.training_namespace import TrainingNamespace, TrainingNamespaceArgs
from holdfast.infra import naming
from holdfast.infra.aws.pools import pool_facts_of

if TYPE_CHECKING:
    from holdfast.components.checkpoints.s3 import CheckpointBucket
    from holdfast.infra.aws.config.stack import AwsPlatform


def make_namespaces(
    platform: AwsPlatform,
    *,
    cluster_name: str,
    checkpoints: CheckpointBucket,
    after: pulumi.ResourceOptions,
) -> None:
    """Make every training namespace, each after what `after` names and after its identity.

    A pod is given its credentials when it is admitted, and not later.
    """
    pools = pool_facts_of(platform)
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
        TrainingNamespace(
            naming.training_namespace(namespace.name),
            TrainingNamespaceArgs(
                namespace=namespace.name,
                ladder=namespace.as_ladder(),
                checkpoint_uri=checkpoints.uri(namespace.name),
                pools=pools,
                shapes=namespace.as_shapes(),
                quota=namespace.as_quota(pools),
            ),
            opts=pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[access])),
        )
