"""Checkpoints in an S3 bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_aws.kms import Key
from pulumi_aws.s3 import (
    Bucket,
    BucketLifecycleConfiguration,
    BucketPolicy,
    BucketPublicAccessBlock,
    BucketServerSideEncryptionConfiguration,
    BucketVersioning,
)

from holdfast.components.checkpoints.s3_policies import bucket_policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_aws.s3 import (
        BucketLifecycleConfigurationRuleArgsDict,
        BucketServerSideEncryptionConfigurationRuleArgsDict,
    )

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
