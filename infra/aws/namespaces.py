"""Creates the training namespaces of an AWS stack, each with access to its own checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pulumi

from holdfast.components.checkpoints.s3 import CheckpointAccess, CheckpointAccessArgs
from holdfast.components.namespace_roles import NamespaceRoles, NamespaceRolesArgs
from holdfast.infra import naming
from holdfast.infra.accepted_clusters import users_in
from holdfast.infra.cluster_services import make_training_namespace
from holdfast.infra.outputs import CHECKPOINT_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input, Output

    from holdfast.components.checkpoints.s3 import CheckpointBucket
    from holdfast.infra.aws.config.stack import AwsPlatform
    from holdfast.infra.exported_tiers import OtherStacks
    from holdfast.scheduling.pools import PoolSummary


@dataclass(frozen=True, kw_only=True)
class Store:
    """Where the jobs of a namespace keep their checkpoints; `key_arn` is the bucket's KMS key, None without one."""

    uri: Input[str]
    bucket_arn: Input[str]
    prefix: str
    key_arn: Input[str] | None


def home_stores(platform: AwsPlatform) -> Mapping[str, Store]:
    """The stores of the namespaces whose jobs keep their checkpoints in the bucket of another stack of the same account."""
    found: dict[str, Store] = {}
    for entry in platform.accepts_from:
        if entry.checkpoints is None:
            continue
        home = pulumi.StackReference(naming.home_checkpoints(entry.name), entry.checkpoints)
        bucket = cast("Output[str]", home.require_output("checkpoints"))
        for namespace in entry.namespaces:
            found[namespace] = Store(
                uri=pulumi.Output.concat("s3://", bucket, "/", namespace),
                bucket_arn=pulumi.Output.concat("arn:", platform.partition, ":s3:::", bucket),
                prefix=namespace,
                key_arn=cast("Output[str]", home.get_output(CHECKPOINT_KEY)),
            )
    return found


def make_namespaces(
    platform: AwsPlatform,
    *,
    cluster_name: str,
    checkpoints: CheckpointBucket,
    pools: Mapping[str, PoolSummary],
    others: OtherStacks,
    accepted: Mapping[str, Sequence[Input[str]]],
    after: pulumi.ResourceOptions,
) -> tuple[Mapping[str, Input[str]], Mapping[str, Input[str]]]:
    """Create every training namespace, and return the identities of their jobs and the addresses of their checkpoints by namespace.

    Each depends on the resources in `after` and on its identity. A pod gets its credentials at admission, so the identity must
    exist before the first pod. `accepted` are the users here of the controllers of other clusters, by the names of those clusters.
    """
    identities: dict[str, Input[str]] = {}
    uris: dict[str, Input[str]] = {}
    homes = home_stores(platform)
    for namespace in platform.namespaces:
        store = homes.get(namespace.name) or Store(
            uri=checkpoints.uri(namespace.name),
            bucket_arn=checkpoints.bucket_arn,
            prefix=checkpoints.prefix(namespace.name),
            key_arn=checkpoints.key_arn,
        )
        access = CheckpointAccess(
            naming.checkpoint_access(namespace.name),
            CheckpointAccessArgs(
                cluster_name=cluster_name,
                namespace=namespace.name,
                bucket_arn=store.bucket_arn,
                prefix=store.prefix,
                key_arn=store.key_arn,
            ),
            opts=after,
        )
        identities[namespace.name], uris[namespace.name] = access.role_arn, store.uri
        made = make_training_namespace(
            namespace,
            checkpoint_uri=store.uri,
            pools=pools,
            others=others,
            accepted=users_in(namespace.name, platform.accepts_from, accepted),
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
    return identities, uris
