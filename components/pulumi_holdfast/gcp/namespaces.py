"""Creates the training namespaces of a GCP stack, each with access to its own checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.config import naming
from pulumi_holdfast.gcp.checkpoints import CheckpointAccess, CheckpointAccessArgs
from pulumi_holdfast.kubernetes.cluster_services import Identity, make_training_namespace
from pulumi_holdfast.kubernetes.other_clusters.accepted_clusters import users_in
from pulumi_holdfast.kubernetes.training_namespace import service_account_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input

    from pulumi_holdfast.gcp.config.sections import GcpPlatform
    from pulumi_holdfast.gcp.preflight import Project
    from pulumi_holdfast.gcp.stores import Store
    from pulumi_holdfast.kubernetes.other_clusters.exported_tiers import OtherStacks
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary


def make_namespaces(
    platform: GcpPlatform,
    project: Project,
    *,
    cluster: str,
    environment: str,
    stores: Mapping[str, Store],
    pools: Mapping[str, PoolSummary],
    others: OtherStacks,
    accepted: Mapping[str, Sequence[Input[str]]],
    after: pulumi.ResourceOptions,
) -> Mapping[str, Input[str]]:
    """Create every training namespace of `cluster`, by its logical name, with access to its store, and return the identities of their jobs by namespace.

    `accepted` are the users here of the controllers of other clusters, by the names of those clusters.
    Each depends on the resources in `after` and on its identity. `environment` is part of the name of its service account:
    nothing else distinguishes the pods of two clusters of one project to Google Cloud.
    """
    account = service_account_of(environment)
    identities: dict[str, Input[str]] = {}
    for namespace in platform.namespaces:
        store = stores[namespace.name]
        access = CheckpointAccess(
            naming.checkpoint_access(cluster, namespace.name),
            CheckpointAccessArgs(
                project=platform.project,
                project_number=project.number,
                namespace=namespace.name,
                service_account=account,
                bucket=store.bucket,
                folder=store.folder,
                has_folder=store.is_home,
            ),
            opts=after,
        )
        identities[namespace.name] = access.principal
        make_training_namespace(
            namespace,
            cluster=cluster,
            checkpoint_uri=store.uri,
            pools=pools,
            others=others,
            accepted=users_in(namespace.name, platform.accepts_from, accepted),
            identity=Identity(service_account=account),
            opts=pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[access])),
        )
    return identities
