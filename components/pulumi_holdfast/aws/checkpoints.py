"""Checkpoints on AWS: a bucket for each training namespace, and where the jobs of each keep theirs, here or at home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import pulumi
from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws.kms import Key
from pulumi_aws.s3 import (
    Bucket,
    BucketLifecycleConfiguration,
    BucketLifecycleConfigurationRuleArgsDict,
    BucketPolicy,
    BucketPublicAccessBlock,
    BucketServerSideEncryptionConfiguration,
    BucketServerSideEncryptionConfigurationRuleArgsDict,
    BucketVersioning,
)

from pulumi_holdfast.aws.policy_documents import Statement, document
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.kubernetes.other_clusters import USE_OTHER_STORE, bucket_in, home_checkpoints
from pulumi_holdfast.kubernetes.outputs import CHECKPOINT_KEYS
from pulumi_holdfast.ladder.json import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.kubernetes.other_clusters import Home, HomeCheckpoints
    from pulumi_holdfast.ladder.json import JsonValue


def bucket_policy(bucket_arn: str) -> str:
    """The bucket's own policy: it denies all requests without TLS."""
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


def bucket_access(*, bucket_arn: str, key_arn: str | None) -> str:
    """The permissions of a namespace's pods: read, write and list in its bucket, and use the bucket's key.

    They may delete a checkpoint, which keeps its versions, but not a version.
    """
    objects = f"{bucket_arn}/*"
    # A deleted bucket's name can be taken by another account, which must not receive checkpoints.
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
            sid="Bucket",
            # Without a condition on the prefix: requests for a missing object or for the bucket have no prefix, and clients
            # take the 403 that would follow for an error.
            actions=["s3:ListBucket", "s3:GetBucketLocation"],
            resources=[bucket_arn],
            conditions={"StringEquals": ours},
        ),
    ]
    if key_arn is not None:
        statements.append(
            Statement(
                sid="Key",
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=[key_arn],
                # The context is the bucket with a bucket key, and the object if a writer turns bucket keys
                # off.
                conditions={"StringLike": {"kms:EncryptionContext:aws:s3:arn": [bucket_arn, objects]}},
            )
        )
    return document(*statements)


#: Days until the parts of an unfinished upload are deleted: longer than any upload takes.
UPLOAD_DAYS: Final = 7

#: Days during which a key's deletion can be canceled: KMS's shortest and longest period.
_KEY_DAYS: Final = {False: 7, True: 30}


def key_description(name: str) -> str:
    """Return the description of the KMS key of a CheckpointBucket, by which an earlier run's key is found."""
    return f"Checkpoints ({name})"


@dataclass(frozen=True, kw_only=True)
class CheckpointBucketArgs:
    """Arguments of `CheckpointBucket`.

    `namespaces` are the training namespaces; each gets a bucket. `retain_days` is how long overwritten or
    deleted versions are kept. `kms` encrypts with a KMS key of the stack instead of S3's. `keeps_key` keeps that
    key, and the access to it, without using it for new objects: earlier ones are encrypted with it. If `protected`,
    buckets and key cannot be deleted and, once the protection is removed, are retained with the resources that
    secure them when the stack is destroyed; otherwise they are deleted with the checkpoints.
    """

    namespaces: Sequence[str]
    retain_days: int
    kms: bool
    protected: bool
    keeps_key: bool = False


class CheckpointBucket(ComponentResource):
    """The checkpoint store on AWS (`holdfast:index:CheckpointBucket`): a bucket for each training namespace.

    Creates Buckets without public access, plain HTTP or customer-provided keys; versioned, with a lifecycle
    that deletes old versions and unfinished uploads and never a current object; and with `kms` a KMS key for all,
    used through bucket keys. The buckets have generated names, so that a new stack does not collide with a
    bucket that an old stack left behind.
    """

    def __init__(self, name: str, args: CheckpointBucketArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointBucket", name, None, opts)
        # The resources that secure a bucket are retained with it: without them it could be made public.
        retained = ResourceOptions(parent=self, protect=args.protected, retain_on_delete=args.protected)
        self.key_arn = (
            Key(
                f"{name}-key",
                description=key_description(name),
                enable_key_rotation=True,
                deletion_window_in_days=_KEY_DAYS[args.protected],
                opts=retained,
            ).arn
            if args.kms or args.keeps_key
            else None
        )
        encryption = _encryption(self.key_arn if args.kms else None)
        self._buckets = {
            namespace: _bucket(f"{name}-{namespace}", encryption, args, retained)
            for namespace in args.namespaces
        }
        self.bucket_names = Output.all(*(each.bucket for each in self._buckets.values())).apply(" ".join)
        self.register_outputs({"bucket_names": self.bucket_names})

    def bucket_arn(self, namespace: str) -> Output[str]:
        """The ARN of a namespace's bucket.

        Raises ValueError for a namespace that is not in `namespaces`.
        """
        return self._bucket(namespace).arn

    def uri(self, namespace: str) -> Output[str]:
        """The `s3://` address of a namespace's checkpoints."""
        return Output.concat("s3://", self._bucket(namespace).bucket, "/", namespace)

    def bucket_name(self, namespace: str) -> Output[str]:
        """The name of a namespace's bucket; raises ValueError as `bucket_arn`."""
        return self._bucket(namespace).bucket

    def _bucket(self, namespace: str) -> Bucket:
        if namespace not in self._buckets:
            raise ValueError(f"{namespace!r} is not one of the store's namespaces {sorted(self._buckets)}")
        return self._buckets[namespace]


def _bucket(
    name: str,
    encryption: BucketServerSideEncryptionConfigurationRuleArgsDict,
    args: CheckpointBucketArgs,
    retained: ResourceOptions,
) -> Bucket:
    bucket = Bucket(f"{name}-bucket", force_destroy=not args.protected, opts=retained)
    private = BucketPublicAccessBlock(
        f"{name}-private",
        bucket=bucket.bucket,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=retained,
    )
    BucketPolicy(
        f"{name}-policy",
        bucket=bucket.bucket,
        policy=bucket.arn.apply(bucket_policy),
        # S3 rejects both at once: "a conflicting conditional operation is currently in progress".
        opts=ResourceOptions.merge(retained, ResourceOptions(depends_on=[private])),
    )
    BucketServerSideEncryptionConfiguration(
        f"{name}-encryption", bucket=bucket.bucket, rules=[encryption], opts=retained
    )
    versioning = BucketVersioning(
        f"{name}-versions",
        bucket=bucket.bucket,
        versioning_configuration={"status": "Enabled"},
        opts=retained,
    )
    BucketLifecycleConfiguration(
        f"{name}-lifecycle",
        bucket=bucket.bucket,
        rules=[_lifecycle(args.retain_days)],
        opts=ResourceOptions.merge(retained, ResourceOptions(depends_on=[versioning])),
    )
    return bucket


def _encryption(key_arn: Output[str] | None) -> BucketServerSideEncryptionConfigurationRuleArgsDict:
    # Checkpoints with a customer-provided key (SSE-C) could not be read by other users.
    if key_arn is None:
        return {
            "apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"},
            "blocked_encryption_types": ["SSE-C"],
        }
    return {
        "apply_server_side_encryption_by_default": {"sse_algorithm": "aws:kms", "kms_master_key_id": key_arn},
        # One KMS call for many objects: a sharded checkpoint would otherwise be throttled and billed per
        # shard.
        "bucket_key_enabled": True,
        "blocked_encryption_types": ["SSE-C"],
    }


def _lifecycle(retain_days: int) -> BucketLifecycleConfigurationRuleArgsDict:
    return {
        "id": "old-versions-and-unfinished-uploads",
        "status": "Enabled",
        # The whole bucket. Without a filter S3 expects the prefix of the first version of the API.
        "filter": {},
        "noncurrent_version_expiration": {"noncurrent_days": retain_days},
        "abort_incomplete_multipart_upload": {"days_after_initiation": UPLOAD_DAYS},
        # Deletes delete markers without remaining versions; never an object.
        "expiration": {"expired_object_delete_marker": True},
    }


@dataclass(frozen=True, kw_only=True)
class Store:
    """Where the jobs of a namespace keep their checkpoints; `key_arn` is the bucket's KMS key, None without one."""

    uri: Input[str]
    bucket_arn: Input[str]
    key_arn: Input[str] | None


def stores_of(
    platform: AwsPlatform, account: str, checkpoints: CheckpointBucket, *, parent: pulumi.Resource
) -> Mapping[str, Store]:
    """The store of each training namespace: the stack's bucket, or, of the same account, that in which accepted jobs keep theirs."""
    own = {
        each.name: Store(
            uri=checkpoints.uri(each.name),
            bucket_arn=checkpoints.bucket_arn(each.name),
            key_arn=checkpoints.key_arn,
        )
        for each in platform.namespaces
    }
    at_home = {
        name: _at_home(found, name, partition=platform.partition, account=account)
        for name, found in home_checkpoints(platform.accepts_from, "AWS", parent=parent).items()
    }
    return own | at_home


def _at_home(found: HomeCheckpoints, namespace: str, *, partition: str, account: str) -> Store:
    keys = found.home.output(CHECKPOINT_KEYS)
    uri = _judged(found, namespace, account)
    return Store(
        uri=uri,
        bucket_arn=pulumi.Output.concat("arn:", partition, ":s3:::", uri.apply(bucket_in)),
        key_arn=keys.apply(lambda known: cast("str", mapping(known).get(namespace))),
    )


def _judged(found: HomeCheckpoints, namespace: str, account: str) -> Output[str]:
    def address(known: list[object]) -> str:
        uri, identities = known
        require_account(found.home, mapping(cast("JsonValue", identities)).get(namespace), account)
        return str(uri)

    return pulumi.Output.all(found.uri, found.home.output("identities")).apply(address)


def require_account(home: Home, role: JsonValue, account: str) -> None:
    """Raise pulumi.RunError if the role of a namespace's jobs at home is not of this account, and so neither is their bucket."""
    its = role.split(":")[4] if isinstance(role, str) and role.count(":") > 4 else None
    if its != account:
        raise home.refusal(
            f"with a bucket in the account {its}"
            if its
            else f"whose jobs have the identity {format_value(role)}",
            allowed=f"a stack in the account {account}: its bucket and its key admit no role of another account",
            fix=USE_OTHER_STORE,
        )
