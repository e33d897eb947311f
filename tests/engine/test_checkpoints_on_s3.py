"""Checkpoints in S3 on the real engine: what a stack deletes and what it retains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
import pytest

from holdfast.components.checkpoints.s3 import (
    CheckpointAccess,
    CheckpointAccessArgs,
    CheckpointBucket,
    CheckpointBucketArgs,
)
from holdfast.simulator.clouds.state import CloudObject
from holdfast.simulator.pulumi import EngineFailure
from tests.support.clusters.cloud_program import CloudProgram

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.engine

_BUCKET = "aws:s3/bucket:Bucket"
_CLUSTER = "aws:eks/cluster:Cluster"
_OBJECT = "aws:s3/bucketObjectv2:BucketObjectv2"
#: What a bucket that is left behind must not be without.
_KEPT = {"key", "bucket", "bucketPublicAccessBlock", "bucketPolicy", "bucketVersioning"} | {
    "bucketServerSideEncryptionConfiguration",
    "bucketLifecycleConfiguration",
}


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    """A stack in an account that has a cluster."""
    stack = CloudProgram(root=tmp_path)
    with stack.cloud().changing() as console:
        console.put(CloudObject(type=_CLUSTER, id="holdfast-dev", urn="", inputs={"name": "holdfast-dev"}))
    return stack


def checkpoints(*, protected: bool) -> None:
    """Register a bucket, and the way to it of two namespaces."""
    bucket = CheckpointBucket(
        "checkpoints",
        CheckpointBucketArgs(namespaces=["vision", "tabular"], retain_days=30, kms=True, protected=protected),
    )
    for namespace in ("vision", "tabular"):
        CheckpointAccess(
            f"access-{namespace}",
            CheckpointAccessArgs(
                cluster_name="holdfast-dev",
                namespace=namespace,
                bucket_arn=bucket.bucket_arn,
                prefix=bucket.prefix(namespace),
                key_arn=bucket.key_arn,
            ),
        )
    pulumi.export("vision", bucket.uri("vision"))


def for_production() -> None:
    checkpoints(protected=True)


def for_development() -> None:
    checkpoints(protected=False)


def unprotected() -> None:
    """Register the same with the protection lifted, as `pulumi state unprotect --all` lifts it."""

    def lift(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
        lifted = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(protect=False))
        return pulumi.ResourceTransformationResult(props=args.props, opts=lifted)

    pulumi.runtime.register_stack_transformation(lift)
    for_production()


def a_job_writes(stack: CloudProgram) -> None:
    (bucket,) = stack.objects(_BUCKET)
    with stack.cloud().changing() as console:
        inputs = {"bucket": bucket.id, "key": "vision/step-100"}
        console.put(CloudObject(type=_OBJECT, id="vision/step-100", urn="", inputs=inputs))


def kinds_left(stack: CloudProgram) -> set[str]:
    """The types of what there is beside the cluster and the job's own objects."""
    left = [one.type for one in stack.cloud().read().all() if one.type not in {_CLUSTER, _OBJECT}]
    return {token.rpartition("/")[2].partition(":")[0] for token in left}


def test_a_development_stack_is_destroyed_with_its_checkpoints(
    stack: CloudProgram,
) -> None:
    made = stack.up(for_development)
    (bucket,) = stack.objects(_BUCKET)
    assert made.outputs["vision"] == f"s3://{bucket.id}/vision", "the output names the path of the namespace"
    assert stack.up(for_development).changed == 0, "a second run has nothing to do"
    stack.refresh(for_development)
    assert stack.up(for_development).changed == 0, "nor after a refresh"

    a_job_writes(stack)
    stack.destroy()
    assert kinds_left(stack) == set(), "neither the bucket nor a way to it is left"


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
    assert kinds_left(stack) == _KEPT, (
        "the bucket stays private, versioned and readable; the ways to it are gone"
    )
    assert stack.objects(_BUCKET) == [bucket], "and it is the bucket that it was"


def test_a_new_stack_does_not_conflict_with_a_retained_bucket(stack: CloudProgram) -> None:
    stack.up(for_production)
    stack.up(unprotected)
    stack.destroy()
    stack.up(for_production)
    assert len(stack.objects(_BUCKET)) == 2, (
        "the new stack made one of its own, and the old one is there still"
    )
