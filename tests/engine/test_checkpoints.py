"""Checkpoints on the real engine: what a stack deletes, what it retains, and what each namespace may access."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import pulumi
import pytest

from pulumi_holdfast.aws import checkpoints as s3
from pulumi_holdfast.aws import identities as s3_access
from pulumi_holdfast.azure import checkpoints as blob
from pulumi_holdfast.azure import identities as blob_access
from pulumi_holdfast.azure.private_endpoint import (
    BlobPrivateEndpoint,
    BlobPrivateEndpointArgs,
    BlobZone,
    BlobZoneArgs,
)
from pulumi_holdfast.azure.role_assignments import STORAGE_BLOB_DATA_CONTRIBUTOR
from pulumi_holdfast.azure.training_cluster import StackResourceGroup, StackResourceGroupArgs
from pulumi_holdfast.gcp import checkpoints as gcs
from pulumi_holdfast.gcp import identities as gcs_access
from pulumi_holdfast.kubernetes.training_namespace import service_account_of
from pulumi_holdfast.rehearsal.clouds.azure.names import SUBSCRIPTION
from pulumi_holdfast.rehearsal.clouds.state import CloudObject
from pulumi_holdfast.rehearsal.engine import EngineFailure
from tests.support.clusters.cloud_program import CloudProgram, create_once

pytestmark = pytest.mark.engine

NAMESPACES = ("vision", "tabular")

EKS = "aws:eks/cluster:Cluster"
GKE = "gcp:container/cluster:Cluster"
FOLDER_GRANT = "gcp:storage/managedFolderIamMember:ManagedFolderIamMember"
KEY_GRANT = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
PROJECT_NUMBER = "123456789012"
KEY = gcs.CustomerKey(
    name="projects/keys/locations/europe-west4/keyRings/holdfast/cryptoKeys/checkpoints",
    storage_agent=f"service-{PROJECT_NUMBER}@gs-project-accounts.iam.gserviceaccount.com",
)

ASSIGNMENT = "azure-native:authorization:RoleAssignment"
CONTAINER = "azure-native:storage:BlobContainer"
CREDENTIAL = "azure-native:managedidentity:FederatedIdentityCredential"
GROUP = "azure-native:resources:ResourceGroup"
IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
SUBNET = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml/providers/Microsoft.Network/virtualNetworks/ml/subnets/nodes"
ISSUER = "https://westeurope.oic.prod-aks.azure.com/tenant/cluster/"


class Program(Protocol):
    """Registers a store, and the access to it of each namespace."""

    def __call__(self, *, protected: bool) -> None: ...


def on_s3(*, protected: bool) -> None:
    bucket = s3.CheckpointBucket(
        "checkpoints",
        s3.CheckpointBucketArgs(namespaces=NAMESPACES, retain_days=30, kms=True, protected=protected),
    )
    for namespace in NAMESPACES:
        s3_access.CheckpointAccess(
            f"access-{namespace}",
            s3_access.CheckpointAccessArgs(
                cluster_name="holdfast-dev",
                namespace=namespace,
                bucket_arn=bucket.bucket_arn(namespace),
                key_arn=bucket.key_arn,
            ),
        )
    pulumi.export("vision", bucket.uri("vision"))


def on_gcs(*, protected: bool, hierarchical: bool = False, after: pulumi.Resource | None = None) -> None:
    bucket = gcs.CheckpointBucket(
        "checkpoints",
        gcs.CheckpointBucketArgs(
            project="ml",
            location="europe-west4",
            namespaces=NAMESPACES,
            retain_days=30,
            protected=protected,
            hierarchical=hierarchical,
            key=KEY,
        ),
    )
    for namespace in NAMESPACES:
        gcs_access.CheckpointAccess(
            f"access-{namespace}",
            gcs_access.CheckpointAccessArgs(
                project="ml",
                project_number=PROJECT_NUMBER,
                namespace=namespace,
                service_account=service_account_of("gcp-dev"),
                bucket=bucket.bucket_name,
                folder=bucket.prefix(namespace),
            ),
            opts=pulumi.ResourceOptions(depends_on=[after] if after else []),
        )
    pulumi.export("vision", bucket.uri("vision"))


def on_blob(
    *,
    protected: bool,
    namespaces: Sequence[str] = NAMESPACES,
    location: str = "westeurope",
    issuer: str = ISSUER,
) -> None:
    group = StackResourceGroup(
        "group",
        StackResourceGroupArgs(group_name="holdfast-azure-dev", location="westeurope", protected=protected),
    )
    store = blob.CheckpointBucket(
        "checkpoints",
        blob.CheckpointBucketArgs(
            location="westeurope",
            subnet_id=SUBNET,
            namespaces=namespaces,
            retain_days=30,
            protected=protected,
        ),
    )
    for namespace in namespaces:
        access = blob_access.CheckpointAccess(
            f"access-{namespace}",
            blob_access.CheckpointAccessArgs(
                resource_group=group.group_name,
                location=location,
                subscription_id=SUBSCRIPTION,
                oidc_issuer=issuer,
                namespace=namespace,
                container_id=store.container_id(namespace),
            ),
        )
        pulumi.export(namespace, store.uri(namespace))
        pulumi.export(f"{namespace}-client", access.client_id)


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """A cloud whose stacks have a checkpoint store.

    `store` is the type of the store, and `retained` the types that keep and guard it; `remaining` are the types that a
    destroyed development stack leaves. `uri` is the path of a namespace, `cluster` and `checkpoint` are objects of others.
    """

    package: str
    program: Program
    store: str
    uri: str
    retained: frozenset[str]
    remaining: frozenset[str] = frozenset()
    config: Mapping[str, str] | None = None
    cluster: CloudObject | None = None
    checkpoint: str | None = None

    def kinds_left(self, stack: CloudProgram) -> set[str]:
        """Return the types of the objects beside the cluster and the job's own objects."""
        found = {one.type for one in stack.cloud(self.package).read().all()}
        return found - {self.cluster.type if self.cluster else None, self.checkpoint}

    def store_of_vision(self, stack: CloudProgram) -> CloudObject:
        """The store with the checkpoints of a namespace; on AWS each has its own."""
        stores = stack.objects(self.store)
        return next((each for each in stores if "vision" in each.urn), stores[0])

    def write_checkpoint(self, stack: CloudProgram) -> None:
        """Write an object as a job does."""
        if self.checkpoint is not None:
            bucket = self.store_of_vision(stack)
            inputs = {"bucket": bucket.id, "key": "vision/step-100", "name": "vision/step-100"}
            with stack.cloud(self.package).changing() as console:
                console.put(CloudObject(type=self.checkpoint, id="vision/step-100", urn="", inputs=inputs))


_AZURE_STORAGE = ("StorageAccount", "BlobContainer", "ManagementPolicy", "BlobServiceProperties")
_S3 = ("", "PublicAccessBlock", "Policy", "Versioning", "ServerSideEncryptionConfiguration")
CLOUDS = {
    "aws": Cloud(
        package="aws",
        program=on_s3,
        store="aws:s3/bucket:Bucket",
        uri="s3://{store}/vision",
        retained=frozenset(
            {"aws:kms/key:Key"}
            | {f"aws:s3/bucket{each}:Bucket{each}" for each in (*_S3, "LifecycleConfiguration")}
        ),
        cluster=CloudObject(type=EKS, id="holdfast-dev", urn="", inputs={"name": "holdfast-dev"}),
        checkpoint="aws:s3/bucketObjectv2:BucketObjectv2",
    ),
    "gcp": Cloud(
        package="gcp",
        program=on_gcs,
        store="gcp:storage/bucket:Bucket",
        uri="gs://{store}/vision",
        retained=frozenset({"gcp:storage/bucket:Bucket", KEY_GRANT}),
        # Cloud Storage's right to the key, which other buckets may need.
        remaining=frozenset({KEY_GRANT}),
        config={"gcp:project": "ml", "gcp:region": "europe-west4"},
        cluster=CloudObject(
            type=GKE,
            id="holdfast-dev",
            urn="",
            inputs={"name": "holdfast-dev", "workloadIdentityConfig": {"workloadPool": "ml.svc.id.goog"}},
        ),
        checkpoint="gcp:storage/bucketObject:BucketObject",
    ),
    "azure": Cloud(
        package="azure-native",
        program=on_blob,
        store="azure-native:storage:StorageAccount",
        uri="abfss://vision@{accountName}.blob.core.windows.net",
        retained=frozenset({GROUP} | {f"azure-native:storage:{each}" for each in _AZURE_STORAGE}),
        config={"azure-native:location": "westeurope"},
    ),
}


def stack_of(cloud: Cloud, root: Path, *, with_cluster: bool = True) -> CloudProgram:
    """Return a stack in an account that has a cluster, unless clusters have no part in the access."""
    stack = CloudProgram(root=root, packages=(cloud.package,), config=dict(cloud.config or {}))
    if cloud.cluster is not None and with_cluster:
        with stack.cloud(cloud.package).changing() as console:
            console.put(cloud.cluster)
    return stack


@pytest.fixture
def on_azure(tmp_path: Path) -> CloudProgram:
    """A stack in an empty subscription."""
    return stack_of(CLOUDS["azure"], tmp_path)


@pytest.mark.parametrize(
    ("name", "program"),
    [*((name, each.program) for name, each in CLOUDS.items()), ("gcp", partial(on_gcs, hierarchical=True))],
    ids=[*CLOUDS, "gcp-hierarchical"],
)
def test_a_development_stack_is_destroyed_with_its_checkpoints(
    name: str, program: Program, tmp_path: Path
) -> None:
    cloud = CLOUDS[name]
    stack = stack_of(cloud, tmp_path)
    register = partial(program, protected=False)
    made = stack.up(register)
    store = cloud.store_of_vision(stack)
    uri = cloud.uri.format(store=store.id, accountName=store.inputs.get("accountName"))
    assert made.outputs["vision"] == uri
    assert stack.up(register).changed == 0
    stack.refresh(register)
    assert stack.up(register).changed == 0

    cloud.write_checkpoint(stack)
    stack.destroy()
    assert cloud.kinds_left(stack) == cloud.remaining


def without_protection(program: Callable[[], None]) -> Callable[[], None]:
    """Return the program with the protection lifted, as `pulumi state unprotect --all` lifts it."""

    def lift(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
        lifted = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(protect=False))
        return pulumi.ResourceTransformationResult(props=args.props, opts=lifted)

    def register() -> None:
        pulumi.runtime.register_stack_transformation(lift)
        program()

    return register


@pytest.mark.parametrize("name", CLOUDS)
def test_a_protected_stack_retains_its_store_and_a_new_stack_does_not_conflict(
    name: str, tmp_path: Path
) -> None:
    cloud = CLOUDS[name]
    stack = stack_of(cloud, tmp_path)
    register = partial(cloud.program, protected=True)
    stack.up(register)
    before = stack.objects(cloud.store)
    cloud.write_checkpoint(stack)
    with pytest.raises(EngineFailure, match="protected"):
        stack.destroy()
    assert stack.objects(cloud.store) == before

    assert "delete" not in stack.up(without_protection(register)).changes
    stack.destroy()
    assert cloud.kinds_left(stack) == cloud.retained
    assert stack.objects(cloud.store) == before
    if cloud.checkpoint is not None:
        assert stack.objects(cloud.checkpoint)
    if name == "azure":
        (group,) = stack.objects(GROUP)
        assert group.inputs["resourceGroupName"] != "holdfast-azure-dev"

    stack.up(register)
    assert len(stack.objects(cloud.store)) == 2 * len(before)


def test_each_namespace_gets_access_to_its_folder_on_gcs(tmp_path: Path) -> None:
    stack = stack_of(CLOUDS["gcp"], tmp_path)
    stack.up(partial(on_gcs, protected=False))
    given = {one.inputs["managedFolder"]: str(one.inputs["member"]) for one in stack.objects(FOLDER_GRANT)}
    assert {folder: member.rpartition("/subject/")[2] for folder, member in given.items()} == {
        "tabular/": "ns/tabular/sa/trainer-gcp-dev",
        "vision/": "ns/vision/sa/trainer-gcp-dev",
    }


def test_no_folder_is_granted_before_the_project_has_a_cluster(tmp_path: Path) -> None:
    project = stack_of(CLOUDS["gcp"], tmp_path, with_cluster=False)

    def with_cluster() -> None:
        from pulumi_gcp.container import Cluster

        cluster = Cluster(
            "cluster", location="europe-west4", workload_identity_config={"workload_pool": "ml.svc.id.goog"}
        )
        on_gcs(protected=False, after=cluster)

    with pytest.raises(EngineFailure, match=r"Identity Pool does not exist \(ml\.svc\.id\.goog\)"):
        project.up(partial(on_gcs, protected=False))
    assert project.up(with_cluster).changes["create"]
    assert len(project.objects(FOLDER_GRANT)) == 2


def test_each_namespace_gets_access_to_its_container_by_its_identity(on_azure: CloudProgram) -> None:
    made = on_azure.up(partial(on_blob, protected=False))
    identities = {one.outputs["principalId"]: one for one in on_azure.objects(IDENTITY)}
    given = {str(one.inputs["scope"]).rpartition("/")[2]: one for one in on_azure.objects(ASSIGNMENT)}
    assert set(given) == {"vision", "tabular"}
    for namespace, one in given.items():
        role = str(one.inputs["roleDefinitionId"]).rpartition("/")[2]
        assert role == STORAGE_BLOB_DATA_CONTRIBUTOR
        identity = identities[one.inputs["principalId"]]
        assert identity.outputs["clientId"] == made.outputs[f"{namespace}-client"]
        (subject,) = [
            credential.inputs["subject"]
            for credential in on_azure.objects(CREDENTIAL)
            if credential.inputs["resourceName"] == identity.inputs["resourceName"]
        ]
        assert subject == f"system:serviceaccount:{namespace}:trainer"


def test_another_cluster_is_trusted_in_place_and_a_recreated_identity_gets_its_container(
    on_azure: CloudProgram,
) -> None:
    on_azure.up(partial(on_blob, protected=False))
    identities = {one.id for one in on_azure.objects(IDENTITY)}
    before = {one.id for one in on_azure.objects(ASSIGNMENT)}
    other_cluster = partial(on_blob, protected=False, issuer=f"{ISSUER}new/")
    changed = on_azure.up(other_cluster)
    assert set(changed.changes) <= {"same", "update"}
    assert {one.id for one in on_azure.objects(IDENTITY)} == identities

    moved = on_azure.up(partial(other_cluster, location="northeurope"))
    assert "replace" in moved.changes
    after = {one.id for one in on_azure.objects(ASSIGNMENT)}
    assert len(after) == 2
    assert not before & after, "Azure cannot change the principal of an assignment: they are new"


def test_a_namespace_removed_from_a_protected_stack_keeps_its_checkpoints(on_azure: CloudProgram) -> None:
    on_azure.up(partial(on_blob, protected=True))
    with pytest.raises(EngineFailure, match="protected"):
        on_azure.up(partial(on_blob, protected=True, namespaces=["tabular"]))
    assert len(on_azure.objects(CONTAINER)) == 2, "protection must be lifted first"


OTHER_ACCOUNT = "/subscriptions/22222222-2222-2222-2222-222222222222/resourceGroups/kept/providers/Microsoft.Storage/storageAccounts/ofhome"


def in_the_account_of_home() -> None:
    """The access of jobs to a container of another stack, with a way to its account."""
    group = StackResourceGroup(
        "group",
        StackResourceGroupArgs(group_name="holdfast-azure-dev", location="westeurope", protected=False),
    )
    zone = BlobZone("zone", BlobZoneArgs(resource_group=group.group_name, subnet_id=SUBNET))
    endpoint = BlobPrivateEndpoint(
        "checkpoints-of-home",
        BlobPrivateEndpointArgs(
            location="westeurope",
            resource_group=group.group_name,
            subnet_id=SUBNET,
            account_id=OTHER_ACCOUNT,
            dns_zone_id=zone.zone_id,
        ),
    )
    blob_access.CheckpointAccess(
        "access-vision",
        blob_access.CheckpointAccessArgs(
            resource_group=group.group_name,
            location="westeurope",
            subscription_id=OTHER_ACCOUNT.split("/")[2],
            oidc_issuer=ISSUER,
            namespace="vision",
            container_id=f"{OTHER_ACCOUNT}/blobServices/default/containers/vision",
        ),
        opts=pulumi.ResourceOptions(depends_on=[endpoint]),
    )


def test_access_to_the_account_of_another_stack_is_stable_and_goes_with_the_stack(
    on_azure: CloudProgram,
) -> None:
    create_once(on_azure, in_the_account_of_home)
    (assignment,) = on_azure.objects(ASSIGNMENT)
    assert assignment.id.startswith(f"{OTHER_ACCOUNT}/blobServices/default/containers/vision/")
    on_azure.destroy(in_the_account_of_home)
    assert on_azure.everything() == []
