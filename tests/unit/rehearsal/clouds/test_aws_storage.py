"""The simulated S3 and KMS."""

from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.engine.values import Properties
from tests.support.clusters.provider_calls import Engine, Provider

_BUCKET = "aws:s3/bucket:Bucket"
_OBJECT = "aws:s3/bucketObjectv2:BucketObjectv2"


def a_job_writes(state_file: Path) -> None:
    """Put a checkpoint into the bucket, as a training job does."""
    with CloudState(state_file).changing() as console:
        inputs = {"bucket": "ckpt", "key": "vision/step-100"}
        console.put(CloudObject(type=_OBJECT, id="vision/step-100", urn="", inputs=inputs))


def test_a_bucket_with_objects_of_its_own_is_not_deleted(aws: Provider, state_file: Path) -> None:
    bucket = Engine(provider=aws, type=_BUCKET)
    made, _ = bucket.create({"bucket": "ckpt"})
    a_job_writes(state_file)
    bucket.refuses_delete(made, "BucketNotEmpty: The bucket you tried to delete is not empty.")
    bucket.update(made, {"bucket": "ckpt", "forceDestroy": True})
    bucket.delete(made)
    assert CloudState(state_file).read().of_type(_BUCKET) == []
    Engine(provider=aws, type=_BUCKET, name="full").create({"bucket": "ckpt"})
    a_job_writes(state_file)
    empty = Engine(provider=aws, type=_BUCKET, name="empty")
    made, _ = empty.create({"bucket": "empty"})
    empty.delete(made)


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        ("BucketPolicy", {"policy": "{}"}),
        ("BucketPublicAccessBlock", {}),
        ("BucketVersioning", {"versioningConfiguration": {"status": "Enabled"}}),
        ("BucketServerSideEncryptionConfiguration", {"rules": [{"bucketKeyEnabled": True}]}),
        ("BucketLifecycleConfiguration", {}),
    ],
)
def test_a_setting_needs_its_bucket(aws: Provider, kind: str, inputs: Properties) -> None:
    setting = Engine(provider=aws, type=f"aws:s3/{kind[0].lower()}{kind[1:]}:{kind}")
    setting.refuses_create({"bucket": "ckpt", **inputs}, "NoSuchBucket: The specified bucket does not exist")
    Engine(provider=aws, type=_BUCKET).create({"bucket": "ckpt"})
    assert setting.create({"bucket": "ckpt", **inputs})[0] == "ckpt"
