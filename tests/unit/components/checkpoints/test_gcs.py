"""Checkpoints in a Cloud Storage bucket."""

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
    """The lifecycle's conditions by what happens then."""
    return {
        text(rule, "action", "type"): mapping(rule, "condition")
        for rule in objects(bucket(args), "lifecycleRules")
    }


@pytest.mark.parametrize("preview", [False, True])
def test_each_namespace_has_a_folder_of_its_own(preview: bool) -> None:
    addresses: list[str] = []

    def use(bucket: CheckpointBucket) -> None:
        store: CheckpointStore = bucket
        for namespace in ("vision", "tabular"):
            store.uri(namespace).apply(addresses.append)

    recorded(preview=preview, use=use)
    assert sorted(addresses) == [
        "gs://checkpoints-bucket-0a1b2c3/tabular",
        "gs://checkpoints-bucket-0a1b2c3/vision",
    ], "a preview knows the addresses too: the bucket's name is made up before it"


def test_a_namespace_that_the_bucket_was_not_told_of_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'audio' is not one of the bucket's namespaces"):
        recorded(use=lambda bucket: bucket.uri("audio"))


def test_the_public_is_kept_out_and_one_set_of_rules_holds_for_all_in_the_bucket() -> None:
    inputs = bucket().inputs
    assert inputs["publicAccessPrevention"] == "enforced", "whatever a grant says later"
    assert inputs["uniformBucketLevelAccess"] is True, (
        "no object has rules of its own, and folders can have some"
    )


def test_the_bucket_is_where_it_was_asked_for_and_stays_the_same_bucket() -> None:
    inputs = bucket().inputs
    assert inputs["location"] == "EUROPE-WEST4", (
        "as Cloud Storage answers: else each refresh would see a change"
    )
    assert inputs["project"] == "ml-dev", "said, not guessed from whoever runs the program"


def test_by_default_what_was_deleted_is_kept_by_soft_delete() -> None:
    inputs = bucket(replace(ARGS, retain_days=30)).inputs
    assert inputs["softDeletePolicy"] == {"retentionDurationSeconds": 30 * 86400}, "no trainer can shorten it"
    assert inputs["versioning"] == {"enabled": False}, (
        "once on it would stay on if it were only left out, and a mounted bucket must have none"
    )


def test_versions_are_kept_instead_where_that_is_asked_for_and_not_twice() -> None:
    inputs = bucket(replace(ARGS, versioned=True)).inputs
    assert inputs["versioning"] == {"enabled": True}, "an overwritten checkpoint can be had back"
    assert inputs["softDeletePolicy"] == {"retentionDurationSeconds": 0}, (
        "left out it would be a week, in which a version that has expired is paid for again"
    )


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("retain_days", [7, 90])
def test_old_versions_and_unfinished_uploads_end_and_current_objects_never_do(
    versioned: bool, retain_days: int
) -> None:
    assert rules(replace(ARGS, versioned=versioned, retain_days=retain_days)) == {
        "AbortIncompleteMultipartUpload": {"age": 7},
        "Delete": {"daysSinceNoncurrentTime": retain_days, "withState": "ARCHIVED"},
    }, "nothing is deleted by its age, and versions that were made before soft delete took over end too"


def test_a_hierarchical_bucket_has_real_folders_and_no_word_of_versions() -> None:
    args = replace(ARGS, hierarchical=True)
    inputs = bucket(args).inputs
    assert inputs["hierarchicalNamespace"] == {"enabled": True}, "as asked"
    assert "versioning" not in inputs, "it has none, on or off"
    assert list(rules(args)) == ["AbortIncompleteMultipartUpload"], "and no old ones to end"


def test_a_flat_bucket_is_the_default() -> None:
    assert "hierarchicalNamespace" not in bucket().inputs, "it is the setting that can never be changed"


def test_a_hierarchical_bucket_with_versions_is_refused_before_anything_is_made() -> None:
    with pytest.raises(ValueError, match="cannot be versioned"):
        replace(ARGS, hierarchical=True, versioned=True)


@pytest.mark.parametrize("retain_days", [0, 6, 91, 365])
def test_a_time_that_soft_delete_cannot_keep_is_refused_and_versions_can(retain_days: int) -> None:
    with pytest.raises(ValueError, match=f"retain_days is {retain_days}: soft delete allows 7 to 90"):
        replace(ARGS, retain_days=retain_days)
    assert replace(ARGS, retain_days=retain_days, versioned=True), "versions are kept as long as one likes"


@pytest.mark.parametrize("key", [None, KEY])
def test_nobody_leaves_a_checkpoint_that_only_their_own_key_opens(key: CustomerKey | None) -> None:
    restriction = ("customerSuppliedEncryptionEnforcementConfig", "restrictionMode")
    assert value(bucket(replace(ARGS, key=key)), "encryption", *restriction) == "FullyRestricted", (
        "nobody else could resume from it"
    )


def test_a_key_of_the_users_is_used_once_cloud_storage_may() -> None:
    recording = recorded(replace(ARGS, key=KEY))
    made = recording.one(":Bucket")
    grant = recording.one(":CryptoKeyIAMMember")
    assert value(made, "encryption", "defaultKmsKeyName") == KEY.name, "the key that was brought"
    assert grant.inputs["cryptoKeyId"] == KEY.name, "and no other is opened"
    assert grant.inputs["member"] == f"serviceAccount:{KEY.storage_agent}", (
        "it is Cloud Storage that encrypts"
    )
    assert grant.inputs["role"] == "roles/cloudkms.cryptoKeyEncrypterDecrypter", "and decrypts, and no more"
    assert grant.name in made.depends_on, "a bucket that names a key it may not use is refused"


@pytest.mark.parametrize("protected", [True, False])
def test_the_right_to_use_the_key_is_never_taken_back(protected: bool) -> None:
    grant = recorded(replace(ARGS, key=KEY, protected=protected)).one(":CryptoKeyIAMMember")
    assert grant.retain_on_delete, "another stack's bucket, with the same key, would become unreadable"


def test_without_a_key_of_the_users_nothing_is_granted() -> None:
    recording = recorded()
    assert recording.of(":CryptoKeyIAMMember") == [], "there is nothing to grant"
    assert "defaultKmsKeyName" not in mapping(recording.one(":Bucket"), "encryption"), "Google's own keys"


def test_a_protected_bucket_outlives_its_stack_with_what_is_in_it() -> None:
    made = bucket(replace(ARGS, protected=True))
    assert made.protect, "a mere `destroy` would delete it"
    assert made.retain_on_delete, "lifting the protection is not yet to delete it"
    assert made.inputs["forceDestroy"] is False, "checkpoints are not deleted with it"


def test_a_bucket_for_development_goes_with_its_stack_checkpoints_and_all() -> None:
    made = bucket(replace(ARGS, protected=False))
    assert not made.protect, "it would be in the way"
    assert not made.retain_on_delete, "it would be left behind"
    assert made.inputs["forceDestroy"] is True, "a bucket with objects cannot be deleted"


@pytest.mark.parametrize("protected", [True, False])
def test_a_new_stack_never_meets_the_bucket_that_an_old_one_left(protected: bool) -> None:
    assert "name" not in bucket(replace(ARGS, protected=protected)).inputs, "a fixed name would be taken"


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
def test_the_folder_is_given_to_the_trainers_of_the_namespace_and_to_nobody_else(preview: bool) -> None:
    (given,) = recorded_access(preview=preview).of("IamMember")
    assert (
        given.inputs["member"]
        == f"principal://iam.googleapis.com/{POOL}/subject/ns/vision/sa/trainer-gcp-dev"
    ), "the pods of one service account, by Workload Identity, without an account of Google's in between"


def test_the_folder_is_the_namespaces_own() -> None:
    recording = recorded_access()
    folder = recording.one(":ManagedFolder")
    assert folder.inputs["name"] == "vision/", (
        "without the slash it would be the beginning of `vision-2/` too"
    )
    assert folder.inputs["bucket"] == "checkpoints-bucket-0a1b2c3", "in the bucket of checkpoints"
    given = recording.one(":ManagedFolderIamMember")
    assert (given.inputs["bucket"], given.inputs["managedFolder"]) == (folder.inputs["bucket"], "vision/"), (
        "of the folder, not of the bucket"
    )


def test_trainers_read_write_and_delete_and_do_not_say_who_else_may() -> None:
    assert grant().inputs["role"] == "roles/storage.objectUser", (
        "an admin's role could open the folder to others"
    )


def test_the_right_is_gone_before_the_folder_and_the_objects_stay() -> None:
    recording = recorded_access()
    assert "access-folder" in recording.one(":ManagedFolderIamMember").depends_on, (
        "a right is a right to something"
    )
    assert recording.one(":ManagedFolder").inputs["forceDestroy"] is True, (
        "a folder with checkpoints in it must not stop a destroy, and what goes is the folder's rights alone"
    )


@pytest.mark.parametrize(
    ("field", "other"),
    [("service_account", "trainer-gcp-prod"), ("namespace", "tabular"), ("project", "ml-prod")],
)
def test_another_environment_namespace_or_project_is_somebody_else(field: str, other: str) -> None:
    assert text(grant(replace(ACCESS, **{field: other})), "member") != text(grant(), "member"), (
        f"two that differ in their {field} would share their checkpoints"
    )


def test_google_does_not_tell_two_clusters_of_a_project_apart() -> None:
    parts = text(grant(), "member").split("/subject/")[1].split("/")
    assert parts == ["ns", "vision", "sa", "trainer-gcp-dev"], (
        "nothing in it names a cluster: that is why the environment is in the service account's name"
    )
