"""A namespace's way to its own checkpoints in Cloud Storage."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pulumi import Output

from holdfast.components.checkpoints.gcs import CheckpointAccess, CheckpointAccessArgs
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import text

ARGS = CheckpointAccessArgs(
    project="ml",
    project_number="123456789012",
    namespace="vision",
    service_account="trainer-gcp-dev",
    bucket="checkpoints-bucket-0a1b2c3",
    folder="vision",
)
POOL = "projects/123456789012/locations/global/workloadIdentityPools/ml.svc.id.goog"


def recorded(args: CheckpointAccessArgs = ARGS, *, preview: bool = False) -> Recording:
    def build() -> None:
        CheckpointAccess("access", replace(args, bucket=Output.from_input(args.bucket)))

    return record(build, preview=preview)


def grant(args: CheckpointAccessArgs = ARGS) -> Recorded:
    return recorded(args).one(":ManagedFolderIamMember")


@pytest.mark.parametrize("preview", [False, True])
def test_the_folder_is_given_to_the_trainers_of_the_namespace_and_to_nobody_else(preview: bool) -> None:
    (given,) = recorded(preview=preview).of("IamMember")
    assert (
        given.inputs["member"]
        == f"principal://iam.googleapis.com/{POOL}/subject/ns/vision/sa/trainer-gcp-dev"
    ), "the pods of one service account, by Workload Identity, without an account of Google's in between"


def test_the_folder_is_the_namespaces_own() -> None:
    recording = recorded()
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
    recording = recorded()
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
    assert text(grant(replace(ARGS, **{field: other})), "member") != text(grant(), "member"), (
        f"two that differ in their {field} would share their checkpoints"
    )


def test_google_does_not_tell_two_clusters_of_a_project_apart() -> None:
    parts = text(grant(), "member").split("/subject/")[1].split("/")
    assert parts == ["ns", "vision", "sa", "trainer-gcp-dev"], (
        "nothing in it names a cluster: that is why the environment is in the service account's name"
    )
