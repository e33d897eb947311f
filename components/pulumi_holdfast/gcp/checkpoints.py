"""Checkpoints in a Cloud Storage bucket: the bucket, and the access of a training namespace to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_gcp.kms import CryptoKeyIAMMember
from pulumi_gcp.storage import (
    Bucket,
    BucketEncryptionArgsDict,
    BucketLifecycleRuleArgsDict,
    ManagedFolder,
    ManagedFolderIamMember,
)


@dataclass(frozen=True, kw_only=True)
class ProjectIdentities:
    """The workload identities of a project, shared by all its clusters: GKE does not distinguish them.

    `project` is the project ID, `number` the project number; a principal contains both.
    """

    project: str
    number: str

    @property
    def pool(self) -> str:
        """The workload identity pool; it exists once the project has a cluster."""
        return f"{self.project}.svc.id.goog"

    def principal(self, *, namespace: str, service_account: str) -> str:
        """The principal of a service account's pods in all clusters of the project."""
        pools = f"projects/{self.number}/locations/global/workloadIdentityPools"
        subject = f"ns/{namespace}/sa/{service_account}"
        return f"principal://iam.googleapis.com/{pools}/{self.pool}/subject/{subject}"


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

    name: str
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


# Read, write, list and delete objects, without changing permissions.
_ROLE: Final = "roles/storage.objectUser"


@dataclass(frozen=True, kw_only=True)
class CheckpointAccessArgs:
    """Arguments of `CheckpointAccess`.

    `project` and `project_number` are the cluster's. `namespace` and `service_account` identify the pods in
    all clusters of the project: two clusters that use the same names share their checkpoints. `bucket` is the
    bucket's name, `folder` the folder in it (no slashes). `has_folder`: another stack has made the managed folder.
    """

    project: str
    project_number: str
    namespace: str
    service_account: str
    bucket: Input[str]
    folder: str
    has_folder: bool = False


class CheckpointAccess(ComponentResource):
    """Lets the pods of one service account use one folder of the bucket (`holdfast:index:CheckpointAccess`).

    Creates the ManagedFolder, to which Cloud Storage can grant access, unless it exists, and the ManagedFolderIamMember
    with the grant. The pods need no right to use a key of the bucket: Cloud Storage's own account does. Depend on the cluster: the workload identity pool exists once the project has one. The
    namespace and the service account may be created later. Deleting this component keeps the checkpoints and
    removes the access.
    """

    def __init__(self, name: str, args: CheckpointAccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointAccess", name, None, opts)
        # With the slash: a grant on `vision` would also be one on `vision-2/`.
        bucket, path = args.bucket, f"{args.folder}/"
        folder: Input[str] = path
        if not args.has_folder:
            made = ManagedFolder(
                f"{name}-folder",
                bucket=bucket,
                name=path,
                # Deletes the managed folder only; the objects keep their names.
                force_destroy=True,
                opts=ResourceOptions(parent=self),
            )
            bucket, folder = made.bucket, made.name
        ManagedFolderIamMember(
            f"{name}-trainers",
            bucket=bucket,
            managed_folder=folder,
            role=_ROLE,
            member=_trainers(args),
            opts=ResourceOptions(parent=self),
        )
        self.principal = _trainers(args)
        self.register_outputs({})


def _trainers(args: CheckpointAccessArgs) -> str:
    identities = ProjectIdentities(project=args.project, number=args.project_number)
    return identities.principal(namespace=args.namespace, service_account=args.service_account)
