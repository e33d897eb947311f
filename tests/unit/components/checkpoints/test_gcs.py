"""Checkpoints in a Cloud Storage bucket, and access to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holdfast.components.checkpoints.gcs import CheckpointBucket, CheckpointBucketArgs, CustomerKey
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import mapping, objects, text, value

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.components.contracts import CheckpointStore
    from holdfast.scheduling.json import Json

from pulumi import Output

from holdfast.components.checkpoints.gcs import CheckpointAccess, CheckpointAccessArgs

ARGS = CheckpointBucketArgs(
    project="ml-dev",
    location="europe-west4",
    namespaces=["vision", "tabular"],
    retain_days=30,
    protected=False,
)
KEY = CustomerKey(
    name="projects/keys/locations/europe-west4/keyRings/holdfast/cryptoKeys/checkpoints",
    storage_agent="service-123456789012@gs-project-accounts.iam.gserviceaccount.com",
)


def recorded(
    args: CheckpointBucketArgs = ARGS,
    *,
    preview: bool = False,
    use: Callable[[CheckpointBucket], object] = lambda _: None,
) -> Recording:
    return record(lambda: use(CheckpointBucket("checkpoints", args)), preview=preview)


def bucket(args: CheckpointBucketArgs = ARGS) -> Recorded:
    return recorded(args).one(":Bucket")


def rules(args: CheckpointBucketArgs) -> dict[str, Json]:
    """The lifecycle's conditions by action."""
    return {
        text(rule, "action", "type"): mapping(rule, "condition")
        for rule in objects(bucket(args), "lifecycleRules")
    }


@pytest.mark.parametrize("preview", [False, True])
def test_each_namespace_has_its_own_folder(preview: bool) -> None:
    addresses: list[str] = []

    def use(bucket: CheckpointBucket) -> None:
        store: CheckpointStore = bucket
        for namespace in ("vision", "tabular"):
            store.uri(namespace).apply(addresses.append)

    recorded(preview=preview, use=use)
    assert sorted(addresses) == [
        "gs://checkpoints-bucket-0a1b2c3/tabular",
        "gs://checkpoints-bucket-0a1b2c3/vision",
    ], "the bucket's generated name is known on preview"


def test_an_unknown_namespace_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"'audio' is not one of the bucket's namespaces"):
        recorded(use=lambda bucket: bucket.uri("audio"))


def test_public_access_is_prevented_and_access_is_uniform() -> None:
    inputs = bucket().inputs
    assert inputs["publicAccessPrevention"] == "enforced", "whatever a later grant says"
    assert inputs["uniformBucketLevelAccess"] is True, (
        "objects have no permissions of their own, and managed folders can"
    )


def test_the_bucket_has_the_configured_location_and_project() -> None:
    inputs = bucket().inputs
    assert inputs["location"] == "EUROPE-WEST4", (
        "as Cloud Storage returns it: otherwise each refresh shows a change"
    )
    assert inputs["project"] == "ml-dev", "set explicitly, not derived from the current user"


def test_soft_delete_is_the_default() -> None:
    inputs = bucket(replace(ARGS, retain_days=30)).inputs
    assert inputs["softDeletePolicy"] == {"retentionDurationSeconds": 30 * 86400}, (
        "trainers cannot shorten it"
    )
    assert inputs["versioning"] == {"enabled": False}, (
        "leaving it out would not turn it off, and a mounted bucket must have none"
    )


def test_versioning_replaces_soft_delete() -> None:
    inputs = bucket(replace(ARGS, versioned=True)).inputs
    assert inputs["versioning"] == {"enabled": True}, "an overwritten checkpoint can be restored"
    assert inputs["softDeletePolicy"] == {"retentionDurationSeconds": 0}, (
        "the default of a week would keep expired versions a second time"
    )


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("retain_days", [7, 90])
def test_the_lifecycle_deletes_old_versions_and_uploads_and_no_current_objects(
    versioned: bool, retain_days: int
) -> None:
    assert rules(replace(ARGS, versioned=versioned, retain_days=retain_days)) == {
        "AbortIncompleteMultipartUpload": {"age": 7},
        "Delete": {"daysSinceNoncurrentTime": retain_days, "withState": "ARCHIVED"},
    }, "nothing is deleted by age, and versions from before soft delete are deleted too"


def test_a_hierarchical_bucket_has_folders_and_no_versioning() -> None:
    args = replace(ARGS, hierarchical=True)
    inputs = bucket(args).inputs
    assert inputs["hierarchicalNamespace"] == {"enabled": True}, "as configured"
    assert "versioning" not in inputs, "it rejects the setting"
    assert list(rules(args)) == ["AbortIncompleteMultipartUpload"], "and has no old versions"


def test_a_flat_bucket_is_the_default() -> None:
    assert "hierarchicalNamespace" not in bucket().inputs, "the setting is immutable"


def test_a_hierarchical_bucket_with_versions_is_rejected() -> None:
    with pytest.raises(ValueError, match="cannot be versioned"):
        replace(ARGS, hierarchical=True, versioned=True)


@pytest.mark.parametrize("retain_days", [0, 6, 91, 365])
def test_a_retention_outside_the_limits_is_rejected_for_soft_delete_only(retain_days: int) -> None:
    with pytest.raises(ValueError, match=f"retain_days is {retain_days}: soft delete allows 7 to 90"):
        replace(ARGS, retain_days=retain_days)
    assert replace(ARGS, retain_days=retain_days, versioned=True), "versions have no limit"


@pytest.mark.parametrize("key", [None, KEY])
def test_customer_supplied_keys_are_disabled(key: CustomerKey | None) -> None:
    restriction = ("customerSuppliedEncryptionEnforcementConfig", "restrictionMode")
    assert value(bucket(replace(ARGS, key=key)), "encryption", *restriction) == "FullyRestricted", (
        "other users could not read the checkpoint"
    )


def test_the_bucket_depends_on_the_grant_of_its_key() -> None:
    recording = recorded(replace(ARGS, key=KEY))
    made = recording.one(":Bucket")
    grant = recording.one(":CryptoKeyIAMMember")
    assert value(made, "encryption", "defaultKmsKeyName") == KEY.name, "the configured key"
    assert grant.inputs["cryptoKeyId"] == KEY.name, "and no other"
    assert grant.inputs["member"] == f"serviceAccount:{KEY.storage_agent}", "Cloud Storage's agent encrypts"
    assert grant.inputs["role"] == "roles/cloudkms.cryptoKeyEncrypterDecrypter", (
        "it may encrypt and decrypt only"
    )
    assert grant.name in made.depends_on, "Cloud Storage rejects a bucket whose key it may not use"


@pytest.mark.parametrize("protected", [True, False])
def test_the_grant_of_the_key_is_retained(protected: bool) -> None:
    grant = recorded(replace(ARGS, key=KEY, protected=protected)).one(":CryptoKeyIAMMember")
    assert grant.retain_on_delete, (
        "otherwise another stack's bucket with the same key would become unreadable"
    )


def test_without_a_key_there_is_no_grant() -> None:
    recording = recorded()
    assert recording.of(":CryptoKeyIAMMember") == [], "there is nothing to grant"
    assert "defaultKmsKeyName" not in mapping(recording.one(":Bucket"), "encryption"), "Google's own keys"


def test_a_protected_bucket_is_retained_with_its_objects() -> None:
    made = bucket(replace(ARGS, protected=True))
    assert made.protect, "a plain `destroy` would delete it"
    assert made.retain_on_delete, "removing the protection must not delete it"
    assert made.inputs["forceDestroy"] is False, "its objects are not deleted with it"


def test_an_unprotected_bucket_is_deleted_with_its_checkpoints() -> None:
    made = bucket(replace(ARGS, protected=False))
    assert not made.protect, "protection would block it"
    assert not made.retain_on_delete, "it would be left behind"
    assert made.inputs["forceDestroy"] is True, "a bucket with objects cannot be deleted"


@pytest.mark.parametrize("protected", [True, False])
def test_the_bucket_name_is_generated(protected: bool) -> None:
    assert "name" not in bucket(replace(ARGS, protected=protected)).inputs, (
        "a fixed name could already be taken"
    )


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


def grant(args: CheckpointAccessArgs = ACCESS) -> Recorded:
    return recorded_access(args).one(":ManagedFolderIamMember")


@pytest.mark.parametrize("preview", [False, True])
def test_the_folder_is_granted_to_the_trainers_of_the_namespace_only(preview: bool) -> None:
    (given,) = recorded_access(preview=preview).of("IamMember")
    assert (
        given.inputs["member"]
        == f"principal://iam.googleapis.com/{POOL}/subject/ns/vision/sa/trainer-gcp-dev"
    ), "the pods of one service account, by Workload Identity, without a Google service account"


def test_the_managed_folder_is_the_namespaces_own() -> None:
    recording = recorded_access()
    folder = recording.one(":ManagedFolder")
    assert folder.inputs["name"] == "vision/", "without the slash it would match `vision-2/` too"
    assert folder.inputs["bucket"] == "checkpoints-bucket-0a1b2c3", "in the checkpoint bucket"
    given = recording.one(":ManagedFolderIamMember")
    assert (given.inputs["bucket"], given.inputs["managedFolder"]) == (folder.inputs["bucket"], "vision/"), (
        "on the folder, not on the bucket"
    )


def test_trainers_read_and_write_objects_without_changing_permissions() -> None:
    assert grant().inputs["role"] == "roles/storage.objectUser", (
        "an admin role could open the folder to others"
    )


def test_the_grant_depends_on_the_folder_and_objects_stay() -> None:
    recording = recorded_access()
    assert "access-folder" in recording.one(":ManagedFolderIamMember").depends_on, "a grant needs its folder"
    assert recording.one(":ManagedFolder").inputs["forceDestroy"] is True, (
        "a folder with checkpoints must not block destroy, and only the managed folder is deleted"
    )


@pytest.mark.parametrize(
    ("field", "other"),
    [("service_account", "trainer-gcp-prod"), ("namespace", "tabular"), ("project", "ml-prod")],
)
def test_another_environment_namespace_or_project_is_another_principal(field: str, other: str) -> None:
    assert text(grant(replace(ACCESS, **{field: other})), "member") != text(grant(), "member"), (
        f"two that differ in {field} would share their checkpoints"
    )


def test_the_principal_does_not_contain_the_cluster() -> None:
    parts = text(grant(), "member").split("/subject/")[1].split("/")
    assert parts == ["ns", "vision", "sa", "trainer-gcp-dev"], (
        "so the service account's name contains the environment"
    )
