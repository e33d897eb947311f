"""Checkpoints in a Cloud Storage bucket, and access to them."""

from dataclasses import replace

import pytest
from pulumi import Output

from pulumi_holdfast.gcp.checkpoints import CheckpointBucket, CheckpointBucketArgs, CustomerKey
from pulumi_holdfast.gcp.identities import CheckpointAccess, CheckpointAccessArgs
from pulumi_holdfast.ladder.json import Json
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import mapping, objects, text, value

ARGS = CheckpointBucketArgs(
    project="ml-dev", location="europe-west4", namespaces=["vision"], retain_days=30, protected=False
)
KEY = CustomerKey(
    name="projects/keys/locations/europe-west4/keyRings/holdfast/cryptoKeys/checkpoints",
    storage_agent="service-123456789012@gs-project-accounts.iam.gserviceaccount.com",
)


def recorded(args: CheckpointBucketArgs = ARGS) -> Recording:
    return record(lambda: CheckpointBucket("checkpoints", args))


def bucket(args: CheckpointBucketArgs = ARGS) -> Recorded:
    return recorded(args).one(":Bucket")


def rules(args: CheckpointBucketArgs) -> dict[str, Json]:
    """The lifecycle's conditions by action."""
    found = objects(bucket(args), "lifecycleRules")
    return {text(rule, "action", "type"): mapping(rule, "condition") for rule in found}


def test_the_bucket_is_private_in_its_location_and_keeps_deleted_objects() -> None:
    inputs = bucket().inputs
    assert inputs["publicAccessPrevention"] == "enforced"
    assert inputs["uniformBucketLevelAccess"] is True
    assert inputs["location"] == "EUROPE-WEST4"
    assert inputs["project"] == "ml-dev"
    assert inputs["softDeletePolicy"] == {"retentionDurationSeconds": 30 * 86400}
    assert inputs["versioning"] == {"enabled": False}, "a mounted bucket must have none: set it explicitly"
    assert "hierarchicalNamespace" not in inputs


def test_versioning_replaces_soft_delete() -> None:
    inputs = bucket(replace(ARGS, versioned=True)).inputs
    assert inputs["versioning"] == {"enabled": True}
    assert inputs["softDeletePolicy"] == {"retentionDurationSeconds": 0}


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("retain_days", [7, 90])
def test_the_lifecycle_deletes_old_versions_and_uploads_and_no_current_objects(
    versioned: bool, retain_days: int
) -> None:
    assert rules(replace(ARGS, versioned=versioned, retain_days=retain_days)) == {
        "AbortIncompleteMultipartUpload": {"age": 7},
        "Delete": {"daysSinceNoncurrentTime": retain_days, "withState": "ARCHIVED"},
    }


def test_a_hierarchical_bucket_has_folders_and_no_versioning() -> None:
    args = replace(ARGS, hierarchical=True)
    inputs = bucket(args).inputs
    assert inputs["hierarchicalNamespace"] == {"enabled": True}
    assert "versioning" not in inputs
    assert list(rules(args)) == ["AbortIncompleteMultipartUpload"]
    with pytest.raises(ValueError, match="cannot be versioned"):
        replace(args, versioned=True)


@pytest.mark.parametrize("retain_days", [0, 6, 91, 365])
def test_a_retention_outside_the_limits_is_rejected_for_soft_delete_only(retain_days: int) -> None:
    with pytest.raises(ValueError, match=f"retain_days is {retain_days}: soft delete allows 7 to 90"):
        replace(ARGS, retain_days=retain_days)
    assert replace(ARGS, retain_days=retain_days, versioned=True)


@pytest.mark.parametrize("protected", [True, False])
def test_the_bucket_depends_on_the_grant_of_its_key_which_is_retained(protected: bool) -> None:
    recording = recorded(replace(ARGS, key=KEY, protected=protected))
    made, grant = recording.one(":Bucket"), recording.one(":CryptoKeyIAMMember")
    assert value(made, "encryption", "defaultKmsKeyName") == KEY.name
    assert grant.inputs["cryptoKeyId"] == KEY.name
    assert grant.inputs["member"] == f"serviceAccount:{KEY.storage_agent}"
    assert grant.inputs["role"] == "roles/cloudkms.cryptoKeyEncrypterDecrypter"
    assert grant.name in made.depends_on
    assert grant.retain_on_delete, "otherwise another stack's bucket with this key would become unreadable"


@pytest.mark.parametrize("key", [None, KEY])
def test_keys_come_from_google_or_kms_and_never_from_the_request(key: CustomerKey | None) -> None:
    recording = recorded(replace(ARGS, key=key))
    encryption = mapping(recording.one(":Bucket"), "encryption")
    restriction = ("customerSuppliedEncryptionEnforcementConfig", "restrictionMode")
    assert value(encryption, *restriction) == "FullyRestricted", "other users could not read the checkpoint"
    assert len(recording.of(":CryptoKeyIAMMember")) == bool(key)
    assert ("defaultKmsKeyName" in encryption) is bool(key)


ACCESS = CheckpointAccessArgs(
    project="ml",
    project_number="123456789012",
    namespace="vision",
    service_account="trainer-gcp-dev",
    bucket="checkpoints-bucket-0a1b2c3",
    folder="vision",
)
POOL = "projects/123456789012/locations/global/workloadIdentityPools/ml.svc.id.goog"


def recorded_access(args: CheckpointAccessArgs = ACCESS, *, preview: bool = False) -> Recording:
    def build() -> None:
        CheckpointAccess("access", replace(args, bucket=Output.from_input(args.bucket)))

    return record(build, preview=preview)


@pytest.mark.parametrize("preview", [False, True])
def test_the_namespaces_own_folder_is_granted_to_its_trainers_only(preview: bool) -> None:
    recording = recorded_access(preview=preview)
    (given,) = recording.of("IamMember")
    member = f"principal://iam.googleapis.com/{POOL}/subject/ns/vision/sa/trainer-gcp-dev"
    assert given.inputs["member"] == member
    assert given.inputs["role"] == "roles/storage.objectUser", "an admin role could open the folder to others"
    folder = recording.one(":ManagedFolder")
    assert folder.inputs["name"] == "vision/", "without the slash it would match `vision-2/` too"
    assert folder.inputs["bucket"] == given.inputs["bucket"] == "checkpoints-bucket-0a1b2c3"
    assert given.inputs["managedFolder"] == "vision/"
    assert "access-folder" in given.depends_on
    assert folder.inputs["forceDestroy"] is True


def test_clients_that_ask_for_the_bucket_may_read_it_and_none_of_its_objects() -> None:
    given = recorded_access().one(":BucketIAMMember")
    assert given.inputs["bucket"] == "checkpoints-bucket-0a1b2c3"
    assert given.inputs["role"] == "roles/storage.bucketViewer", "gcsfs asks for it before it makes a folder"
    assert str(given.inputs["member"]).endswith("/subject/ns/vision/sa/trainer-gcp-dev")


@pytest.mark.parametrize(
    ("field", "other"),
    [("service_account", "trainer-gcp-prod"), ("namespace", "tabular"), ("project", "ml-prod")],
)
def test_another_environment_namespace_or_project_is_another_principal(field: str, other: str) -> None:
    one, two = (
        text(recorded_access(args).one(":ManagedFolderIamMember"), "member")
        for args in (ACCESS, replace(ACCESS, **{field: other}))
    )
    assert one != two, f"two that differ in {field} would share their checkpoints"
