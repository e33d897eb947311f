"""Creates the training namespaces of a GCP stack, each with access to its own checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from holdfast.components.checkpoints.gcs import CheckpointAccess, CheckpointAccessArgs
from holdfast.components.training_namespace import service_account_of
from holdfast.infra import naming
from holdfast.infra.cluster_services import Identity, make_training_namespace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi import Input

    from holdfast.components.checkpoints.gcs import CheckpointBucket
    from holdfast.infra.exported_tiers import OtherStacks
    from holdfast.infra.gcp.config.stack import GcpPlatform
    from holdfast.infra.gcp.preflight import Project
    from holdfast.scheduling.pools import PoolSummary


def make_namespaces(
    platform: GcpPlatform,
    project: Project,
    *,
    environment: str,
    checkpoints: CheckpointBucket,
    pools: Mapping[str, PoolSummary],
    others: OtherStacks,
    after: pulumi.ResourceOptions,
) -> Mapping[str, Input[str]]:
    """Create every training namespace, and return the identities of their jobs by namespace.

    Each depends on the resources in `after` and on its identity. `environment` is part of the name of its service account:
    nothing else distinguishes the pods of two clusters of one project to Google Cloud.
    """
    account = service_account_of(environment)
    identities: dict[str, Input[str]] = {}
    for namespace in platform.namespaces:
        access = CheckpointAccess(
            naming.checkpoint_access(namespace.name),
            CheckpointAccessArgs(
                project=platform.project,
                project_number=project.number,
                namespace=namespace.name,
                service_account=account,
                bucket=checkpoints.bucket_name,
                folder=checkpoints.prefix(namespace.name),
            ),
            opts=after,
        )
        identities[namespace.name] = access.principal
        make_training_namespace(
            namespace,
            checkpoint_uri=checkpoints.uri(namespace.name),
            pools=pools,
            others=others,
            identity=Identity(service_account=account),
            opts=pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[access])),
        )
    return identities
