"""Checkpoints in an S3 bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_aws.eks import PodIdentityAssociation
from pulumi_aws.iam import Role, RolePolicy
from pulumi_aws.kms import Key
from pulumi_aws.s3 import (
    Bucket,
    BucketLifecycleConfiguration,
    BucketPolicy,
    BucketPublicAccessBlock,
    BucketServerSideEncryptionConfiguration,
    BucketVersioning,
)

from holdfast.components.iam.aws import Statement, Workload, document, pod_identity_trust

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input
    from pulumi_aws.s3 import (
        BucketLifecycleConfigurationRuleArgsDict,
        BucketServerSideEncryptionConfigurationRuleArgsDict,
    )


def bucket_policy(bucket_arn: str) -> str:
    """The bucket's own policy: nobody, whoever they are, reads or writes in plain text over a network."""
    return document(
        Statement(
            sid="TlsOnly",
            effect="Deny",
            principals="*",
            actions=["s3:*"],
            resources=[bucket_arn, f"{bucket_arn}/*"],
            conditions={"Bool": {"aws:SecureTransport": "false"}},
        )
    )


def prefix_access(*, bucket_arn: str, prefix: str, key_arn: str | None) -> str:
    """What a namespace's pods may do: read, write and list under `prefix/`, and use the bucket's key for that.

    They may delete a checkpoint, which leaves its version behind, and not a version.
    """
    objects = f"{bucket_arn}/{prefix}/*"
    # A bucket's name is free once the bucket is gone: whoever takes it in another account is sent no checkpoints.
    ours = {"aws:ResourceAccount": "${aws:PrincipalAccount}"}
    statements = [
        Statement(
            sid="Checkpoints",
            actions=[
                "s3:GetObject",
                "s3:PutObject",
                "s3:DeleteObject",
                "s3:AbortMultipartUpload",
                "s3:ListMultipartUploadParts",
            ],
            resources=[objects],
            conditions={"StringEquals": ours},
        ),
        Statement(
            sid="OwnPrefix",
            actions=["s3:ListBucket"],
            resources=[bucket_arn],
            # With the slash: `vision*` would also list what lies under `vision-2/`.
            conditions={"StringEquals": ours, "StringLike": {"s3:prefix": [f"{prefix}/*"]}},
        ),
    ]
    if key_arn is not None:
        statements.append(
            Statement(
                sid="Key",
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=[key_arn],
                # S3 names the bucket under a bucket key, and the object for a writer who turns bucket keys off.
                conditions={"StringLike": {"kms:EncryptionContext:aws:s3:arn": [bucket_arn, objects]}},
            )
        )
    return document(*statements)


#: Days until the parts of an upload that was never finished are removed: longer than any upload, shorter than a bill.
UPLOAD_DAYS: Final = 7

#: Days that AWS keeps a deleted key for second thoughts: its shortest, and its longest.
_KEY_DAYS: Final = {False: 7, True: 30}


@dataclass(frozen=True, kw_only=True)
class CheckpointBucketArgs:
    """What a bucket of checkpoints is told.

    `namespaces` are the training namespaces, each with a prefix of its own there. `retain_days` is how long a version
    stays that was overwritten or deleted. `kms` encrypts with a key of the stack's own instead of S3's. `protected`:
    bucket and key refuse to be deleted, and once that is lifted outlive the stack with everything that guards them;
    else they go with it, checkpoints and all.
    """

    namespaces: Sequence[str]
    retain_days: int
    kms: bool
    protected: bool


class CheckpointBucket(ComponentResource):
    """The place for checkpoints on AWS: one bucket, one prefix for each training namespace.

    Creates the Bucket, closed to the public, to plain text and to keys that callers bring; versioned; with a lifecycle
    that ends old versions and unfinished uploads and never a current object; and where asked for a KMS key, used
    through bucket keys. The bucket's name is made up, so that a new stack never meets the bucket that an old one left.
    """

    def __init__(self, name: str, args: CheckpointBucketArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointBucket", name, None, opts)
        # What guards the bucket is kept as the bucket is: left behind without it, a bucket could be opened to all.
        kept = ResourceOptions(parent=self, protect=args.protected, retain_on_delete=args.protected)
        self._namespaces = frozenset(args.namespaces)
        self.key_arn = (
            Key(
                f"{name}-key",
                description=f"Checkpoints ({name})",
                enable_key_rotation=True,
                deletion_window_in_days=_KEY_DAYS[args.protected],
                opts=kept,
            ).arn
            if args.kms
            else None
        )
        bucket = Bucket(f"{name}-bucket", force_destroy=not args.protected, opts=kept)
        private = BucketPublicAccessBlock(
            f"{name}-private",
            bucket=bucket.bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=kept,
        )
        BucketPolicy(
            f"{name}-policy",
            bucket=bucket.bucket,
            policy=bucket.arn.apply(bucket_policy),
            # S3 refuses two of these at once: "a conflicting conditional operation is currently in progress".
            opts=ResourceOptions.merge(kept, ResourceOptions(depends_on=[private])),
        )
        BucketServerSideEncryptionConfiguration(
            f"{name}-encryption", bucket=bucket.bucket, rules=[_encryption(self.key_arn)], opts=kept
        )
        versioning = BucketVersioning(
            f"{name}-versions",
            bucket=bucket.bucket,
            versioning_configuration={"status": "Enabled"},
            opts=kept,
        )
        BucketLifecycleConfiguration(
            f"{name}-lifecycle",
            bucket=bucket.bucket,
            rules=[_lifecycle(args.retain_days)],
            opts=ResourceOptions.merge(kept, ResourceOptions(depends_on=[versioning])),
        )
        self.bucket_name = bucket.bucket
        self.bucket_arn = bucket.arn
        self.register_outputs({"bucket_name": self.bucket_name})

    def prefix(self, namespace: str) -> str:
        """The prefix that a namespace's checkpoints lie under, without slashes.

        Raises ValueError for a namespace that the bucket was not told of.
        """
        if namespace not in self._namespaces:
            raise ValueError(f"{namespace!r} is none of the bucket's namespaces: {sorted(self._namespaces)}")
        return namespace

    def uri(self, namespace: str) -> Output[str]:
        """The `s3://` address of a namespace's checkpoints."""
        return Output.concat("s3://", self.bucket_name, "/", self.prefix(namespace))


def _encryption(key_arn: Output[str] | None) -> BucketServerSideEncryptionConfigurationRuleArgsDict:
    # A caller who brings a key of their own (SSE-C) leaves checkpoints that nobody else can read.
    if key_arn is None:
        return {
            "apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"},
            "blocked_encryption_types": ["SSE-C"],
        }
    return {
        "apply_server_side_encryption_by_default": {"sse_algorithm": "aws:kms", "kms_master_key_id": key_arn},
        # One call to KMS for many objects: a checkpoint of many shards would else be throttled, and billed, for each.
        "bucket_key_enabled": True,
        "blocked_encryption_types": ["SSE-C"],
    }


def _lifecycle(retain_days: int) -> BucketLifecycleConfigurationRuleArgsDict:
    return {
        "id": "old-versions-and-unfinished-uploads",
        "status": "Enabled",
        # All of the bucket. An absent filter is not the same: S3 then wants the prefix of the rules' first version.
        "filter": {},
        "noncurrent_version_expiration": {"noncurrent_days": retain_days},
        "abort_incomplete_multipart_upload": {"days_after_initiation": UPLOAD_DAYS},
        # Of a deleted object whose versions have all expired, the mark that it was deleted; never an object.
        "expiration": {"expired_object_delete_marker": True},
    }


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
