"""A training namespace's way to its own checkpoints in S3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_aws.eks import PodIdentityAssociation
from pulumi_aws.iam import Role, RolePolicy

from holdfast.components.checkpoints.s3_policies import prefix_access
from holdfast.components.iam.document import Workload, pod_identity_trust

if TYPE_CHECKING:
    from pulumi import Input

#: Characters of a role's name that are ours: AWS allows 64, and 26 make it unique.
_NAME_LIMIT: Final = 38


@dataclass(frozen=True, kw_only=True)
class CheckpointAccessArgs:
    """Whose way it is and where to.

    `cluster_name`, `namespace` and `service_account` say which pods. `bucket_arn` and `prefix` (no slashes) say where
    to; `key_arn` is the KMS key of the bucket, None where it has none of its own.
    """

    cluster_name: str
    namespace: str
    service_account: str = "trainer"
    bucket_arn: Input[str]
    prefix: str
    key_arn: Input[str] | None


class CheckpointAccess(ComponentResource):
    """Lets the pods of one service account reach one prefix of the bucket, and nothing else.

    Creates a Role that those pods alone can get, its RolePolicy, and the PodIdentityAssociation by which they get it.
    Neither namespace nor service account need be there yet; the association must be there before the first pod,
    because credentials are put into a pod when it is admitted.
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
                lambda known: prefix_access(
                    bucket_arn=known["bucket"],
                    prefix=args.prefix,
                    key_arn=known["key"],
                )
            ),
            opts=ResourceOptions(parent=self),
        )
        PodIdentityAssociation(
            f"{name}-association",
            cluster_name=args.cluster_name,
            namespace=args.namespace,
            service_account=args.service_account,
            role_arn=role.arn,
            # A pod that gets the role before its policy would be refused, and its job would count that as a failure.
            opts=ResourceOptions(parent=self, depends_on=[policy]),
        )
        self.role_arn = role.arn
        self.register_outputs({"role_arn": self.role_arn})
