"""Checkpoints in a Cloud Storage bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_gcp.kms import CryptoKeyIAMMember
from pulumi_gcp.storage import Bucket, ManagedFolder, ManagedFolderIamMember

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input, Resource
    from pulumi_gcp.storage import BucketEncryptionArgsDict, BucketLifecycleRuleArgsDict


@dataclass(frozen=True, kw_only=True)
class ProjectIdentities:
    """The identities of a project's pods: those of all its clusters together, which GKE does not tell apart.

    `project` is the project's id, `number` its number: a principal's name holds both.
    """

    project: str
    number: str

    @property
    def pool(self) -> str:
        """The pool that they are in; there is none before the project's first cluster."""
        return f"{self.project}.svc.id.goog"

    def principal(self, *, namespace: str, service_account: str) -> str:
        """The pods of a service account, in whichever of the project's clusters, as a grant names them."""
        pools = f"projects/{self.number}/locations/global/workloadIdentityPools"
        subject = f"ns/{namespace}/sa/{service_account}"
        return f"principal://iam.googleapis.com/{pools}/{self.pool}/subject/{subject}"


#: Days for which Cloud Storage can keep what was soft-deleted, from the fewest to the most.
SOFT_DELETE_DAYS: Final = (7, 90)

#: Days until the parts of an upload that was never finished are removed: longer than any upload, shorter than a bill.
UPLOAD_DAYS: Final = 7

_SECONDS_A_DAY: Final = 24 * 60 * 60

_KEY_ROLE: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


@dataclass(frozen=True, kw_only=True)
class CustomerKey:
    """A key that objects are encrypted with instead of Google's, in the location of the bucket.

    `name` is the key's (`projects/…/locations/…/keyRings/…/cryptoKeys/…`). `storage_agent` is the address of the
    account in the bucket's project that Cloud Storage uses keys as (`service-…@gs-project-accounts.iam.…`). It is
    there only once somebody has asked for it, and no grant can name it before.
    """

    name: str
    storage_agent: str


@dataclass(frozen=True, kw_only=True)
class CheckpointBucketArgs:
    """What a bucket of checkpoints is told.

    `location` is a region; `namespaces` are the training namespaces, each with a folder of its own there.
    `retain_days` is how long a checkpoint can be had back that was overwritten or deleted: by soft delete, for 7 to 90
    days, which nobody can shorten who may delete an object; or where the bucket is `versioned` by its versions, which
    they can delete as well, and with which neither Cloud Storage FUSE nor a hierarchical namespace works.
    `hierarchical` makes folders real, so that one is renamed at once. `key` is None for Google's own. `protected`: the
    bucket refuses to be deleted, and once that is lifted outlives the stack; else it goes with it, checkpoints and all.

    Raises ValueError for what Cloud Storage would refuse halfway through an update.
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
                raise ValueError("a bucket with a hierarchical namespace keeps no versions: take soft delete")
            return
        fewest, most = SOFT_DELETE_DAYS
        if not fewest <= self.retain_days <= most:
            raise ValueError(f"soft delete keeps objects for {fewest} to {most} days, not {self.retain_days}")


class CheckpointBucket(ComponentResource):
    """The place for checkpoints on Google Cloud: one bucket, one folder for each training namespace.

    Creates the Bucket, closed to the public and to keys that callers bring, with one set of rules for all in it;
    keeping what was overwritten or deleted for a while; with a lifecycle that ends old versions and unfinished uploads
    and never a current object. Where a key is brought, first the grant that lets Cloud Storage use it, which is never
    taken back: it serves every bucket of the project that has this key. The bucket's name is made up, so that a new
    stack never meets the bucket that an old one left.
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
            # As Cloud Storage writes it: a location in small letters comes back from it changed.
            location=args.location.upper(),
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            force_destroy=not args.protected,
            # Said even where it is off, which leaving it out does not turn it; but not where it can never be on.
            versioning=None if args.hierarchical else {"enabled": args.versioned},
            # Never left out: Cloud Storage would keep, and bill, every deleted object for a week of its own accord.
            soft_delete_policy={"retention_duration_seconds": _soft_delete_seconds(args)},
            lifecycle_rules=_lifecycle(args),
            hierarchical_namespace={"enabled": True} if args.hierarchical else None,
            encryption=_encryption(args.key),
            opts=ResourceOptions(
                parent=self,
                depends_on=grants,
                protect=args.protected,
                retain_on_delete=args.protected,
            ),
        )
        self.bucket_name = bucket.name
        self.register_outputs({"bucket_name": self.bucket_name})

    def prefix(self, namespace: str) -> str:
        """The folder that a namespace's checkpoints lie in, without slashes.

        Raises ValueError for a namespace that the bucket was not told of.
        """
        if namespace not in self._namespaces:
            raise ValueError(f"{namespace!r} is none of the bucket's namespaces: {sorted(self._namespaces)}")
        return namespace

    def uri(self, namespace: str) -> Output[str]:
        """The `gs://` address of a namespace's checkpoints."""
        return Output.concat("gs://", self.bucket_name, "/", self.prefix(namespace))


def _soft_delete_seconds(args: CheckpointBucketArgs) -> int:
    # Beside versions it would keep each a second time, after it had expired.
    return 0 if args.versioned else args.retain_days * _SECONDS_A_DAY


def _encryption(key: CustomerKey | None) -> BucketEncryptionArgsDict:
    # A caller who brings a key of their own leaves checkpoints that nobody else can read.
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
    # Also without versioning: versions that are there when it is turned off would stay for ever.
    versions: BucketLifecycleRuleArgsDict = {
        "action": {"type": "Delete"},
        # Archived is what has been overwritten or deleted: by its age alone a current object would end too.
        "condition": {"days_since_noncurrent_time": args.retain_days, "with_state": "ARCHIVED"},
    }
    return [uploads, versions]


# Read, write, list and delete, and nothing about who else may.
_ROLE: Final = "roles/storage.objectUser"


@dataclass(frozen=True, kw_only=True)
class CheckpointAccessArgs:
    """Whose way it is and where to.

    `project` and `project_number` are the cluster's; `namespace` and `service_account` say which pods, in every cluster
    of that project: two that share both names share their checkpoints. `bucket` is the bucket's name, `folder` the
    folder in it (no slashes).
    """

    project: str
    project_number: str
    namespace: str
    service_account: str
    bucket: Input[str]
    folder: str


class CheckpointAccess(ComponentResource):
    """Lets the pods of one service account reach one folder of the bucket, and nothing else.

    Creates the ManagedFolder, which is what Cloud Storage can give rights to, and the ManagedFolderIamMember that
    gives them. Depend on the cluster: Google Cloud knows no pods of a project before its first one. Neither namespace
    nor service account need be there yet. When it goes the checkpoints stay, and none of the namespace's pods reaches
    them.
    """

    def __init__(self, name: str, args: CheckpointAccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointAccess", name, None, opts)
        folder = ManagedFolder(
            f"{name}-folder",
            bucket=args.bucket,
            # With the slash: rights to `vision` would be rights to `vision-2/` too.
            name=f"{args.folder}/",
            # Of the folder alone: its objects stay where they are, under names that begin as before.
            force_destroy=True,
            opts=ResourceOptions(parent=self),
        )
        ManagedFolderIamMember(
            f"{name}-trainers",
            bucket=folder.bucket,
            managed_folder=folder.name,
            role=_ROLE,
            member=_trainers(args),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


def _trainers(args: CheckpointAccessArgs) -> str:
    identities = ProjectIdentities(project=args.project, number=args.project_number)
    return identities.principal(namespace=args.namespace, service_account=args.service_account)
