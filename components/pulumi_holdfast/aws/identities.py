"""Identities on AWS: the limits of every role, and the training namespaces whose jobs have access to their own checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pulumi
from pulumi import ComponentResource, Input, Output, ResourceOptions, ResourceTransformation
from pulumi_aws.eks import PodIdentityAssociation
from pulumi_aws.iam import Role, RolePolicy

from pulumi_holdfast.aws.checkpoints import bucket_access
from pulumi_holdfast.aws.policy_documents import Statement, Workload, document, pod_identity_trust
from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.cluster_services import Identity, make_training_namespace
from pulumi_holdfast.kubernetes.labels import transformation
from pulumi_holdfast.kubernetes.namespace_roles import NamespaceRoles, NamespaceRolesArgs
from pulumi_holdfast.kubernetes.network import EKS_ENDPOINTS
from pulumi_holdfast.kubernetes.other_clusters import users_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_holdfast.aws.checkpoints import Store
    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.kubernetes.other_clusters import OtherStacks
    from pulumi_holdfast.kubernetes.storage import Storage
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary

_ROLE: Final = "aws:iam/role:Role"
_PROFILE: Final = "aws:iam/instanceProfile:InstanceProfile"

#: IAM's default path.
_ROOT: Final = "/"


def role_limits(boundary: Input[str] | None, path: str) -> ResourceTransformation:
    """Give every role the permissions boundary and the path, and instance profiles the path.

    `boundary` is the ARN of a policy, None for no boundary. A change of the path replaces the roles.
    """

    def restricted(kind: str, _: Mapping[str, object]) -> Mapping[str, object] | None:
        of_path = {} if path == _ROOT else {"path": path}
        if kind == _ROLE:
            return {**of_path, **({} if boundary is None else {"permissions_boundary": boundary})} or None
        return (of_path or None) if kind == _PROFILE else None

    return transformation(restricted)


#: Length of the chosen part of a role's name: AWS allows 64 characters, and 26 make it unique.
_NAME_LIMIT: Final = 38


@dataclass(frozen=True, kw_only=True)
class CheckpointAccessArgs:
    """Arguments of `CheckpointAccess`.

    `cluster_name`, `namespace` and `service_account` identify the pods. `bucket_arn` is the bucket that they may
    use; `key_arn` is its KMS key, or None.
    """

    cluster_name: str
    namespace: str
    service_account: str = "trainer"
    bucket_arn: Input[str]
    key_arn: Input[str] | None


class CheckpointAccess(ComponentResource):
    """Lets the pods of one service account use one bucket (`holdfast:index:CheckpointAccess`).

    Creates a Role for those pods only, its RolePolicy and its PodIdentityAssociation. The namespace and the
    service account may be created later. The association must exist before the first pod, because credentials
    are injected at admission.
    """

    def __init__(self, name: str, args: CheckpointAccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointAccess", name, None, opts)
        role = Role(
            f"{name}-role",
            name_prefix=f"{args.cluster_name}-{args.namespace}"[: _NAME_LIMIT - 1] + "-",
            description=f"Checkpoints of {args.namespace}/{args.service_account} in {args.cluster_name}",
            assume_role_policy=pod_identity_trust(
                Workload(
                    cluster_name=args.cluster_name,
                    namespace=args.namespace,
                    service_account=args.service_account,
                )
            ),
            opts=ResourceOptions(parent=self),
        )
        policy = RolePolicy(
            f"{name}-policy",
            role=role.name,
            policy=Output.all(bucket=args.bucket_arn, key=args.key_arn).apply(
                lambda known: bucket_access(bucket_arn=known["bucket"], key_arn=known["key"])
            ),
            opts=ResourceOptions(parent=self),
        )
        PodIdentityAssociation(
            f"{name}-association",
            cluster_name=args.cluster_name,
            namespace=args.namespace,
            service_account=args.service_account,
            role_arn=role.arn,
            # A pod with the role but without its policy would be denied, and its job would count a failure.
            opts=ResourceOptions(parent=self, depends_on=[policy]),
        )
        self.role_arn = role.arn
        self.role_name = role.name
        self.register_outputs({"role_arn": self.role_arn})


def dataset_access(bucket_arn: str) -> str:
    """Return the permissions of jobs that mount a bucket: they list and read it."""
    ours = {"StringEquals": {"aws:ResourceAccount": "${aws:PrincipalAccount}"}}
    return document(
        Statement(sid="List", actions=["s3:ListBucket"], resources=[bucket_arn], conditions=ours),
        Statement(sid="Read", actions=["s3:GetObject"], resources=[f"{bucket_arn}/*"], conditions=ours),
    )


@dataclass(frozen=True, kw_only=True)
class DatasetAccessArgs:
    """`role` is the name of the role of a namespace's jobs, `bucket_arn` what they read with it."""

    role: Input[str]
    bucket_arn: Input[str]


class DatasetAccess(ComponentResource):
    """Lets the jobs of one namespace read a bucket (`holdfast:index:DatasetAccess`). Creates a RolePolicy of their role."""

    def __init__(self, name: str, args: DatasetAccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:DatasetAccess", name, None, opts)
        RolePolicy(
            f"{name}-policy",
            role=args.role,
            policy=Output.from_input(args.bucket_arn).apply(dataset_access),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


def make_namespaces(
    platform: AwsPlatform,
    *,
    cluster: str,
    cluster_name: str,
    stores: Mapping[str, Store],
    pools: Mapping[str, PoolSummary],
    others: OtherStacks,
    accepted: Mapping[str, Sequence[Input[str]]],
    storage: Storage,
    after: pulumi.ResourceOptions,
) -> Mapping[str, Input[str]]:
    """Create every training namespace of `cluster`, by its logical name, with access to its store, and return the identities of their jobs by namespace.

    Each depends on the resources in `after` and on its identity. A pod gets its credentials at admission, so the identity must
    exist before the first pod. `storage` are the volumes that jobs may mount. `accepted` are the users here of the controllers of other clusters, by the names of those clusters.
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
                key_arn=store.key_arn,
            ),
            opts=after,
        )
        identities[namespace.name] = access.role_arn
        reads = [
            DatasetAccess(
                naming.dataset_access(cluster, namespace.name, volume),
                DatasetAccessArgs(role=access.role_name, bucket_arn=bucket_arn),
                opts=after,
            )
            for volume, bucket_arn in storage.buckets.get(namespace.name, {}).items()
        ]
        made = make_training_namespace(
            namespace,
            cluster=cluster,
            checkpoint_uri=store.uri,
            pools=pools,
            others=others,
            accepted=users_in(namespace.name, platform.accepts_from, accepted),
            identity=Identity(endpoints=EKS_ENDPOINTS),
            volumes=storage.volumes.get(namespace.name, ()),
            opts=pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[access, *reads])),
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
