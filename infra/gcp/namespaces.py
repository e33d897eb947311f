"""Creates the training namespaces of a GCP stack, each with access to its own checkpoints, or to those that its jobs have at home."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pulumi

from holdfast.components.checkpoints.gcs import CheckpointAccess, CheckpointAccessArgs
from holdfast.components.training_namespace import service_account_of
from holdfast.infra import naming
from holdfast.infra.accepted_clusters import users_in
from holdfast.infra.cluster_services import Identity, make_training_namespace
from holdfast.scheduling.json import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input, Output

    from holdfast.components.checkpoints.gcs import CheckpointBucket
    from holdfast.infra.exported_tiers import OtherStacks
    from holdfast.infra.gcp.config.stack import GcpPlatform
    from holdfast.infra.gcp.preflight import Project
    from holdfast.scheduling.json import Json
    from holdfast.scheduling.pools import PoolSummary


@dataclass(frozen=True, kw_only=True)
class Store:
    """Where the jobs of a namespace keep their checkpoints. `is_home`: in a folder that another stack has made."""

    uri: Input[str]
    bucket: Input[str]
    folder: str
    is_home: bool = False


def home_stores(platform: GcpPlatform) -> Mapping[str, Store]:
    """The stores of the namespaces whose jobs keep their checkpoints in the bucket of another stack."""
    found: dict[str, Store] = {}
    for entry in platform.accepts_from:
        if entry.checkpoints is None:
            continue
        home = pulumi.StackReference(naming.home_checkpoints(entry.name), entry.checkpoints)
        uris = cast("Output[Json]", home.require_output("checkpointUris"))
        for namespace in entry.namespaces:
            uri = uris.apply(
                lambda known, namespace=namespace, stack=entry.checkpoints: home_uri(known, namespace, stack)
            )
            found[namespace] = Store(
                uri=uri,
                # Jobs at home may keep theirs in the bucket of a home of their own.
                bucket=uri.apply(bucket_in),
                folder=namespace,
                is_home=True,
            )
    return found


def home_uri(uris: Json, namespace: str, stack: str) -> str:
    """The address of a namespace's checkpoints in a stack, of all that it exports. Raises ValueError if jobs of a GKE cluster cannot use it."""
    uri = mapping(uris).get(namespace)
    if not isinstance(uri, str) or not uri.startswith("gs://"):
        raise ValueError(
            f"acceptsFrom: checkpoints: {stack} has {uri or 'no checkpoints'} for {namespace}, and jobs here use buckets of Cloud Storage "
            "alone: leave out checkpoints, or accept jobs of a stack on Google Cloud"
        )
    return uri


def bucket_in(uri: str) -> str:
    """The name of the bucket in a `gs://` address."""
    return uri.removeprefix("gs://").partition("/")[0]


def make_namespaces(
    platform: GcpPlatform,
    project: Project,
    *,
    environment: str,
    checkpoints: CheckpointBucket,
    pools: Mapping[str, PoolSummary],
    others: OtherStacks,
    accepted: Mapping[str, Sequence[Input[str]]],
    after: pulumi.ResourceOptions,
) -> tuple[Mapping[str, Input[str]], Mapping[str, Input[str]]]:
    """Create every training namespace, and return the identities of their jobs and the addresses of their checkpoints by namespace.

    `accepted` are the users here of the controllers of other clusters, by the names of those clusters.
    Each depends on the resources in `after` and on its identity. `environment` is part of the name of its service account:
    nothing else distinguishes the pods of two clusters of one project to Google Cloud.
    """
    account = service_account_of(environment)
    identities: dict[str, Input[str]] = {}
    stores: dict[str, Input[str]] = {}
    homes = home_stores(platform)
    for namespace in platform.namespaces:
        store = homes.get(namespace.name) or Store(
            uri=checkpoints.uri(namespace.name),
            bucket=checkpoints.bucket_name,
            folder=checkpoints.prefix(namespace.name),
        )
        access = CheckpointAccess(
            naming.checkpoint_access(namespace.name),
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
        identities[namespace.name], stores[namespace.name] = access.principal, store.uri
        make_training_namespace(
            namespace,
            checkpoint_uri=store.uri,
            pools=pools,
            others=others,
            accepted=users_in(namespace.name, platform.accepts_from, accepted),
            identity=Identity(service_account=account),
            opts=pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[access])),
        )
    return identities, stores
