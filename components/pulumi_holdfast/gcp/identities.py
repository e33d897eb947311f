"""Identities on Google Cloud: the training namespaces, whose jobs have access to their own checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pulumi
from pulumi import ComponentResource, Input, ResourceOptions
from pulumi_gcp.storage import BucketIAMMember, ManagedFolder, ManagedFolderIamMember

from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.cluster_services import Identity, make_training_namespace
from pulumi_holdfast.kubernetes.network import GKE_ENDPOINTS
from pulumi_holdfast.kubernetes.other_clusters import users_in
from pulumi_holdfast.kubernetes.training_namespace import service_account_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_holdfast.gcp.checkpoints import Store
    from pulumi_holdfast.gcp.config.sections import GcpPlatform
    from pulumi_holdfast.gcp.preflight.checks import Project
    from pulumi_holdfast.kubernetes.other_clusters import OtherStacks
    from pulumi_holdfast.kubernetes.storage import Storage
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary


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


# Read, write, list and delete objects, without changing permissions.
_ROLE: Final = "roles/storage.objectUser"

# Read the bucket itself and none of its objects: ordinary clients look for it before they make a folder.
_BUCKET_ROLE: Final = "roles/storage.bucketViewer"


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

    Creates the ManagedFolder, to which Cloud Storage can grant access, unless it exists, the ManagedFolderIamMember
    with the grant, and a BucketIAMMember that lets them read the bucket's settings. The pods need no right to use a key of the bucket: Cloud Storage's own account does. Depend on the cluster: the workload identity pool exists once the project has one. The
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
        BucketIAMMember(
            f"{name}-bucket",
            bucket=bucket,
            role=_BUCKET_ROLE,
            member=_trainers(args),
            opts=ResourceOptions(parent=self),
        )
        self.principal = _trainers(args)
        self.register_outputs({})


def _trainers(args: CheckpointAccessArgs) -> str:
    identities = ProjectIdentities(project=args.project, number=args.project_number)
    return identities.principal(namespace=args.namespace, service_account=args.service_account)


@dataclass(frozen=True, kw_only=True)
class DatasetAccessArgs:
    """`principal` are the pods of a namespace, `bucket` is the name of what they read."""

    principal: str
    bucket: Input[str]


class DatasetAccess(ComponentResource):
    """Lets the pods of one namespace read a bucket (`holdfast:index:DatasetAccess`). Creates a BucketIAMMember."""

    def __init__(self, name: str, args: DatasetAccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:DatasetAccess", name, None, opts)
        BucketIAMMember(
            f"{name}-readers",
            bucket=args.bucket,
            role="roles/storage.objectViewer",
            member=args.principal,
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


def make_namespaces(
    platform: GcpPlatform,
    project: Project,
    *,
    cluster: str,
    environment: str,
    stores: Mapping[str, Store],
    pools: Mapping[str, PoolSummary],
    others: OtherStacks,
    accepted: Mapping[str, Sequence[Input[str]]],
    storage: Storage,
    after: pulumi.ResourceOptions,
) -> Mapping[str, Input[str]]:
    """Create every training namespace of `cluster`, by its logical name, with access to its store, and return the identities of their jobs by namespace.

    `accepted` are the users here of the controllers of other clusters, by the names of those clusters; `storage` are the volumes that
    jobs may mount. Each depends on the resources in `after` and on its identity. `environment` is part of the name of its service account:
    nothing else distinguishes the pods of two clusters of one project to Google Cloud.
    """
    account = service_account_of(environment)
    identities: dict[str, Input[str]] = {}
    for namespace in platform.namespaces:
        store = stores[namespace.name]
        access = CheckpointAccess(
            naming.checkpoint_access(cluster, namespace.name),
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
        identities[namespace.name] = access.principal
        reads = [
            DatasetAccess(
                naming.dataset_access(cluster, namespace.name, volume),
                DatasetAccessArgs(principal=access.principal, bucket=bucket),
                opts=after,
            )
            for volume, bucket in storage.buckets.get(namespace.name, {}).items()
        ]
        make_training_namespace(
            namespace,
            cluster=cluster,
            checkpoint_uri=store.uri,
            pools=pools,
            others=others,
            accepted=users_in(namespace.name, platform.accepts_from, accepted),
            identity=Identity(service_account=account, endpoints=GKE_ENDPOINTS),
            volumes=storage.volumes.get(namespace.name, ()),
            opts=pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[access, *reads])),
        )
    return identities
