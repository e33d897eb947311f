"""The simulated Cloud Storage."""

from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.engine.values import Properties
from tests.support.clusters.provider_calls import Engine, Provider, refusal

_BUCKET = "gcp:storage/bucket:Bucket"
_FOLDER = "gcp:storage/managedFolder:ManagedFolder"
_GRANT = "gcp:storage/managedFolderIamMember:ManagedFolderIamMember"
_KEY_GRANT = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
_OBJECT = "gcp:storage/bucketObject:BucketObject"

_KEY = "projects/keys/locations/us-west1/keyRings/ring/cryptoKeys/key"
_AGENT = "service-123456789012@gs-project-accounts.iam.gserviceaccount.com"
_INPUTS: Properties = {"name": "ckpt", "location": "US-WEST1", "uniformBucketLevelAccess": True}
_IN_VISION: Properties = {"bucket": "ckpt", "name": "vision/"}


@pytest.fixture
def bucket(gcp: Provider) -> Engine:
    return Engine(provider=gcp, type=_BUCKET)


@pytest.fixture
def folder(gcp: Provider) -> Engine:
    return Engine(provider=gcp, type=_FOLDER)


def a_job_writes(state_file: Path, name: str = "vision/step-100") -> None:
    """Put a checkpoint into the bucket, as a training job does."""
    with CloudState(state_file).changing() as console:
        inputs = {"bucket": "ckpt", "name": name}
        console.put(CloudObject(type=_OBJECT, id=name, urn="", inputs=inputs))


def test_a_bucket_names_no_key_that_cloud_storage_may_not_use(gcp: Provider, bucket: Engine) -> None:
    inputs: Properties = {**_INPUTS, "encryption": {"defaultKmsKeyName": _KEY}}
    assert "Permission denied on Cloud KMS key." in refusal(lambda: bucket.create(inputs))
    role = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
    grant: Properties = {"cryptoKeyId": _KEY, "role": role, "member": f"serviceAccount:{_AGENT}"}
    Engine(provider=gcp, type=_KEY_GRANT).create(grant)
    assert bucket.create(inputs)[0] == "ckpt"


def test_a_bucket_with_objects_is_not_deleted(bucket: Engine, state_file: Path) -> None:
    made, _ = bucket.create(_INPUTS)
    a_job_writes(state_file)
    bucket.refuses_delete(made, "Error trying to delete bucket ckpt without `force_destroy` set to true")
    bucket.update(made, {**_INPUTS, "forceDestroy": True})
    bucket.delete(made)
    assert CloudState(state_file).read().of_type(_BUCKET) == []


@pytest.mark.parametrize("inside", ["vision/step-100", "vision/run/step-100"])
def test_a_folder_with_objects_is_kept(bucket: Engine, folder: Engine, state_file: Path, inside: str) -> None:
    bucket.create(_INPUTS)
    a_job_writes(state_file, "vision-2/step-100")
    folder.removes(folder.create(_IN_VISION)[0])
    made, _ = folder.create(_IN_VISION)
    a_job_writes(state_file, inside)
    folder.refuses_delete(made, "not empty")
    folder.update(made, {**_IN_VISION, "forceDestroy": True})
    folder.delete(made)
    assert len(CloudState(state_file).read().of_type(_OBJECT)) == 2


def test_a_right_is_to_a_folder_that_is_there(gcp: Provider, bucket: Engine, folder: Engine) -> None:
    grant = Engine(provider=gcp, type=_GRANT)
    role, member = "roles/storage.objectUser", "group:trainers@example.com"
    inputs: Properties = {"bucket": "ckpt", "managedFolder": "vision/", "role": role, "member": member}
    bucket.create(_INPUTS)
    grant.refuses_create(inputs, "The specified managed folder does not exist.")
    folder.create(_IN_VISION)
    made, _ = grant.create(inputs)
    assert made == f"b/ckpt/managedFolders/vision//{role}/{member}"
