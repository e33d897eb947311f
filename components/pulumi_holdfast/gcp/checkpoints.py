"""Checkpoints on Google Cloud: the bucket of a cluster, and where the jobs of each training namespace keep theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_gcp.kms import CryptoKeyIAMMember
from pulumi_gcp.storage import Bucket, BucketEncryptionArgsDict, BucketLifecycleRuleArgsDict

from pulumi_holdfast.kubernetes.other_clusters import bucket_in, home_checkpoints

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pulumi

    from pulumi_holdfast.gcp.config.sections import GcpPlatform

#: The fewest and the most days for which Cloud Storage keeps soft-deleted objects.
SOFT_DELETE_DAYS: Final = (7, 90)

#: Days until the parts of an unfinished upload are deleted: longer than any upload takes.
UPLOAD_DAYS: Final = 7

_SECONDS_A_DAY: Final = 24 * 60 * 60

_KEY_ROLE: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


@dataclass(frozen=True, kw_only=True)
class CustomerKey:
    """A customer-managed key for the objects, in the location of the bucket.

    `name` is the key's name (`projects/…/locations/…/keyRings/…/cryptoKeys/…`). `storage_agent` is the
    address of Cloud Storage's service agent in the bucket's project (`service-…@gs-project-accounts.iam.…`).
    Google creates the agent when it is first requested; before that no grant can name it.
    """

    name: Input[str]
    storage_agent: str


@dataclass(frozen=True, kw_only=True)
class CheckpointBucketArgs:
    """Arguments of `CheckpointBucket`.

    `location` is a region. `namespaces` are the training namespaces; each gets a folder. `retain_days` is how
    long overwritten or deleted checkpoints can be restored: with soft delete for 7 to 90 days, which users
    that may delete objects cannot shorten; or, if `versioned`, with object versions, which those users can
    delete, and which neither Cloud Storage FUSE nor a hierarchical namespace supports. `hierarchical` makes
    folders real objects that can be renamed atomically. `key` None means Google's own key. If `protected`,
    the bucket cannot be deleted and, once the protection is removed, is retained when the stack is destroyed;
    otherwise it is deleted with its checkpoints.

    Raises ValueError for values that Cloud Storage would reject during an update.
    """

    project: str
    location: str
    namespaces: Sequence[str]
    retain_days: int
    protected: bool
    versioned: bool = False
    hierarchical: bool = False
    key: CustomerKey | None = None

    def __post_init__(self) -> None:
        if self.versioned:
            if self.hierarchical:
                raise ValueError("a hierarchical bucket cannot be versioned: set one of them to false")
            return
        fewest, most = SOFT_DELETE_DAYS
        if not fewest <= self.retain_days <= most:
            raise ValueError(f"retain_days is {self.retain_days}: soft delete allows {fewest} to {most}")


class CheckpointBucket(ComponentResource):
    """The checkpoint store on Google Cloud (`holdfast:index:CheckpointBucket`): a bucket with folders.

    Creates a Bucket without public access or customer-supplied keys and with uniform bucket-level access; it
    keeps overwritten and deleted objects for `retain_days`, and its lifecycle deletes old versions and
    unfinished uploads and never a current object. With `key`, first the grant that lets Cloud Storage use it;
    the grant is never removed because it serves every bucket of the project with this key. The bucket has a
    generated name, so that a new stack does not collide with a bucket that an old stack left behind.
    """

    def __init__(self, name: str, args: CheckpointBucketArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointBucket", name, None, opts)
        self._namespaces = frozenset(args.namespaces)
        grants: list[Resource] = []
        if args.key is not None:
            grants.append(
                CryptoKeyIAMMember(
                    f"{name}-key-use",
                    crypto_key_id=args.key.name,
                    role=_KEY_ROLE,
                    member=f"serviceAccount:{args.key.storage_agent}",
                    opts=ResourceOptions(parent=self, retain_on_delete=True),
                )
            )
        bucket = Bucket(
            f"{name}-bucket",
            project=args.project,
            # Cloud Storage returns locations in upper case; lower case would show a difference.
            location=args.location.upper(),
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            force_destroy=not args.protected,
            # Set even if it is off, because leaving it out does not turn it off. A hierarchical bucket
            # rejects it.
            versioning=None if args.hierarchical else {"enabled": args.versioned},
            # Never left out: the default is to keep, and bill, deleted objects for a week.
            soft_delete_policy={"retention_duration_seconds": _soft_delete_seconds(args)},
            lifecycle_rules=_lifecycle(args),
            hierarchical_namespace={"enabled": True} if args.hierarchical else None,
            encryption=_encryption(args.key),
            opts=ResourceOptions(
                parent=self, depends_on=grants, protect=args.protected, retain_on_delete=args.protected
            ),
        )
        self.bucket_name = bucket.name
        self.register_outputs({"bucket_name": self.bucket_name})

    def prefix(self, namespace: str) -> str:
        """The folder of a namespace's checkpoints, without slashes.

        Raises ValueError for a namespace that is not in `namespaces`.
        """
        if namespace not in self._namespaces:
            raise ValueError(
                f"{namespace!r} is not one of the bucket's namespaces {sorted(self._namespaces)}"
            )
        return namespace

    def uri(self, namespace: str) -> Output[str]:
        """The `gs://` address of a namespace's checkpoints."""
        return Output.concat("gs://", self.bucket_name, "/", self.prefix(namespace))


def _soft_delete_seconds(args: CheckpointBucketArgs) -> int:
    # With versions, soft delete would keep each version a second time after it expires.
    return 0 if args.versioned else args.retain_days * _SECONDS_A_DAY


def _encryption(key: CustomerKey | None) -> BucketEncryptionArgsDict:
    # Checkpoints with a customer-supplied key could not be read by other users.
    brought: BucketEncryptionArgsDict = {
        "customer_supplied_encryption_enforcement_config": {"restriction_mode": "FullyRestricted"}
    }
    return brought if key is None else {**brought, "default_kms_key_name": key.name}


def _lifecycle(args: CheckpointBucketArgs) -> list[BucketLifecycleRuleArgsDict]:
    uploads: BucketLifecycleRuleArgsDict = {
        "action": {"type": "AbortIncompleteMultipartUpload"},
        "condition": {"age": UPLOAD_DAYS},
    }
    if args.hierarchical:
        return [uploads]
    # Also without versioning: otherwise the versions that exist when it is turned off stay indefinitely.
    versions: BucketLifecycleRuleArgsDict = {
        "action": {"type": "Delete"},
        # ARCHIVED means noncurrent; by age alone current objects would be deleted too.
        "condition": {"days_since_noncurrent_time": args.retain_days, "with_state": "ARCHIVED"},
    }
    return [uploads, versions]


@dataclass(frozen=True, kw_only=True)
class Store:
    """Where the jobs of a namespace keep their checkpoints. `is_home`: in a folder that another stack has made."""

    uri: Input[str]
    bucket: Input[str]
    folder: str
    is_home: bool = False


def stores_of(
    platform: GcpPlatform, checkpoints: CheckpointBucket, *, parent: pulumi.Resource
) -> Mapping[str, Store]:
    """The store of each training namespace: the stack's bucket, or that in which accepted jobs keep theirs."""
    own = {
        each.name: Store(
            uri=checkpoints.uri(each.name),
            bucket=checkpoints.bucket_name,
            folder=checkpoints.prefix(each.name),
        )
        for each in platform.namespaces
    }
    at_home = {
        name: Store(uri=found.uri, bucket=found.uri.apply(bucket_in), folder=name, is_home=True)
        for name, found in home_checkpoints(platform.accepts_from, "Google Cloud", parent=parent).items()
    }
    return own | at_home
