"""Checkpoints in Cloud Storage on the real engine: what a stack deletes and what it retains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
import pytest

from holdfast.components.checkpoints.gcs import (
    CheckpointAccess,
    CheckpointAccessArgs,
    CheckpointBucket,
    CheckpointBucketArgs,
    CustomerKey,
)
from holdfast.components.training_namespace import service_account_of
from holdfast.simulator.clouds.state import CloudObject
from holdfast.simulator.pulumi import EngineFailure
from tests.support.clusters.cloud_program import CloudProgram

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.engine

_BUCKET = "gcp:storage/bucket:Bucket"
_CLUSTER = "gcp:container/cluster:Cluster"
_FOLDER_GRANT = "gcp:storage/managedFolderIamMember:ManagedFolderIamMember"
_KEY_GRANT = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
_OBJECT = "gcp:storage/bucketObject:BucketObject"

_NUMBER = "123456789012"
_KEY = CustomerKey(
    name="projects/keys/locations/europe-west4/keyRings/holdfast/cryptoKeys/checkpoints",
    storage_agent=f"service-{_NUMBER}@gs-project-accounts.iam.gserviceaccount.com",
)


@pytest.fixture
def project(tmp_path: Path) -> CloudProgram:
    """A stack in a project that has never had a cluster."""
    return CloudProgram(
        root=tmp_path, packages=("gcp",), config={"gcp:project": "ml", "gcp:region": "europe-west4"}
    )


@pytest.fixture
def stack(project: CloudProgram) -> CloudProgram:
    """A stack in a project that has a cluster."""
    with project.cloud("gcp").changing() as console:
        inputs = {"name": "holdfast-dev", "workloadIdentityConfig": {"workloadPool": "ml.svc.id.goog"}}
        console.put(CloudObject(type=_CLUSTER, id="holdfast-dev", urn="", inputs=inputs))
    return project


def checkpoints(*, protected: bool, hierarchical: bool = False, after: pulumi.Resource | None = None) -> None:
    """Register a bucket, and the way to it of two namespaces, in a given environment."""
    bucket = CheckpointBucket(
        "checkpoints",
        CheckpointBucketArgs(
            project="ml",
            location="europe-west4",
            namespaces=["vision", "tabular"],
            retain_days=30,
            protected=protected,
            hierarchical=hierarchical,
            key=_KEY,
        ),
    )
    for namespace in ("vision", "tabular"):
        CheckpointAccess(
            f"access-{namespace}",
            CheckpointAccessArgs(
                project="ml",
                project_number=_NUMBER,
                namespace=namespace,
                service_account=service_account_of("gcp-dev"),
                bucket=bucket.bucket_name,
                folder=bucket.prefix(namespace),
            ),
            opts=pulumi.ResourceOptions(depends_on=[after] if after else []),
        )
    pulumi.export("vision", bucket.uri("vision"))


def for_production() -> None:
    checkpoints(protected=True)


def for_development() -> None:
    checkpoints(protected=False)


def with_real_folders() -> None:
    checkpoints(protected=False, hierarchical=True)


def with_its_cluster() -> None:
    """Register the project's first cluster too, which the ways to the bucket come after."""
    from pulumi_gcp.container import Cluster

    cluster = Cluster(
        "cluster", location="europe-west4", workload_identity_config={"workload_pool": "ml.svc.id.goog"}
    )
    checkpoints(protected=False, after=cluster)


def unprotected() -> None:
    """Register the same with the protection lifted, as `pulumi state unprotect --all` lifts it."""

    def lift(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
        lifted = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(protect=False))
        return pulumi.ResourceTransformationResult(props=args.props, opts=lifted)

    pulumi.runtime.register_stack_transformation(lift)
    for_production()


def a_job_writes(stack: CloudProgram) -> None:
    (bucket,) = stack.objects(_BUCKET)
    with stack.cloud("gcp").changing() as console:
        inputs = {"bucket": bucket.id, "name": "vision/step-100"}
        console.put(CloudObject(type=_OBJECT, id="vision/step-100", urn="", inputs=inputs))


def kinds_left(stack: CloudProgram) -> set[str]:
    """The types of what there is beside the cluster and the job's own objects."""
    found = stack.cloud("gcp").read().all()
    return {one.type for one in found if one.type not in {_CLUSTER, _OBJECT}}


@pytest.mark.parametrize("program", [for_development, with_real_folders])
def test_a_development_stack_is_destroyed_with_its_checkpoints(
    stack: CloudProgram, program: Callable[[], None]
) -> None:
    made = stack.up(program)
    (bucket,) = stack.objects(_BUCKET)
    assert made.outputs["vision"] == f"gs://{bucket.id}/vision", "the output names the path of the namespace"
    assert stack.up(program).changed == 0, "a second run has nothing to do"
    stack.refresh(program)
    assert stack.up(program).changed == 0, "nor after a refresh"

    a_job_writes(stack)
    stack.destroy()
    assert kinds_left(stack) == {_KEY_GRANT}, (
        "of the stack nothing is left but Cloud Storage's right to the key, which other buckets may need"
    )


def test_each_namespace_gets_access_to_its_folder(stack: CloudProgram) -> None:
    stack.up(for_development)
    given = {one.inputs["managedFolder"]: str(one.inputs["member"]) for one in stack.objects(_FOLDER_GRANT)}
    assert {folder: member.rpartition("/subject/")[2] for folder, member in given.items()} == {
        "tabular/": "ns/tabular/sa/trainer-gcp-dev",
        "vision/": "ns/vision/sa/trainer-gcp-dev",
    }, "and no other"


def test_a_protected_stack_retains_its_bucket_after_an_unprotected_destroy(
    stack: CloudProgram,
) -> None:
    stack.up(for_production)
    (bucket,) = stack.objects(_BUCKET)
    a_job_writes(stack)
    with pytest.raises(EngineFailure, match="protected"):
        stack.destroy()
    assert stack.objects(_BUCKET) == [bucket], "a destroy that was not meant deletes nothing"

    assert "delete" not in stack.up(unprotected).changes, "lifting the protection deletes nothing yet"
    stack.destroy()
    assert kinds_left(stack) == {_BUCKET, _KEY_GRANT}, (
        "the bucket stays, and readable; the ways to it are gone"
    )
    assert stack.objects(_BUCKET) == [bucket], "and it is the bucket that it was"
    assert stack.objects(_OBJECT), "with the checkpoints in it"


def test_a_new_stack_does_not_conflict_with_a_retained_bucket(stack: CloudProgram) -> None:
    stack.up(for_production)
    stack.up(unprotected)
    stack.destroy()
    stack.up(for_production)
    assert len(stack.objects(_BUCKET)) == 2, (
        "the new stack made one of its own, and the old one is there still"
    )


def test_without_a_cluster_in_the_project_no_folder_is_granted(project: CloudProgram) -> None:
    with pytest.raises(EngineFailure, match=r"Identity Pool does not exist \(ml\.svc\.id\.goog\)"):
        project.up(for_development)
    assert project.up(with_its_cluster).changes["create"], "after the first cluster, there is"
    assert len(project.objects(_FOLDER_GRANT)) == 2, "both namespaces have their ways"
