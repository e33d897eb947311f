"""Checkpoints in Blob Storage."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.components.azure_names import is_container_name
from holdfast.components.checkpoints.blob import CheckpointBucket, CheckpointBucketArgs
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import mapping, objects, text, value

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.components.contracts import CheckpointStore

ARGS = CheckpointBucketArgs(
    location="westeurope",
    namespaces=["vision", "tabular"],
    retain_days=30,
    protected=False,
)
KEPT = (":ResourceGroup", ":StorageAccount", ":BlobServiceProperties", ":ManagementPolicy", ":BlobContainer")


def recorded(
    args: CheckpointBucketArgs = ARGS,
    *,
    preview: bool = False,
    use: Callable[[CheckpointBucket], object] = lambda _: None,
) -> Recording:
    return record(lambda: use(CheckpointBucket("checkpoints", args)), preview=preview)


def account(args: CheckpointBucketArgs = ARGS) -> Recorded:
    return recorded(args).one(":StorageAccount")


def addresses(*, preview: bool = False) -> list[str]:
    """Where each namespace is told to write."""
    found: list[str] = []

    def use(bucket: CheckpointBucket) -> None:
        store: CheckpointStore = bucket
        for namespace in ("vision", "tabular"):
            store.uri(namespace).apply(found.append)

    recorded(preview=preview, use=use)
    return sorted(found)


def test_each_namespace_has_a_container_of_its_own() -> None:
    containers = recorded().of(":BlobContainer")
    assert {text(one, "containerName") for one in containers} == {"vision", "tabular"}, "of its name"
    assert addresses() == [
        "abfss://tabular@checkpoints0a1b2c3d.dfs.core.windows.net",
        "abfss://vision@checkpoints0a1b2c3d.dfs.core.windows.net",
    ], "which is where its jobs write to"


def test_a_preview_makes_up_no_address() -> None:
    assert addresses(preview=True) == [], "the account's name is Azure's to tell"


@pytest.mark.parametrize("use", [CheckpointBucket.uri, CheckpointBucket.container_id])
def test_a_namespace_that_the_store_was_not_told_of_is_refused(
    use: Callable[[CheckpointBucket, str], object],
) -> None:
    with pytest.raises(
        ValueError, match=r"'audio' is not one of the store's namespaces \['tabular', 'vision'\]"
    ):
        recorded(use=lambda bucket: use(bucket, "audio"))


def test_neither_the_public_nor_anybody_with_a_key_gets_in() -> None:
    inputs = account().inputs
    assert inputs["allowBlobPublicAccess"] is False, "whatever a container says"
    assert inputs["allowSharedKeyAccess"] is False, (
        "a key opens every namespace's container, and nobody knows whose"
    )
    assert inputs["isLocalUserEnabled"] is False, "a local user has a password of its own"
    assert inputs["allowCrossTenantReplication"] is False, "a copy in another tenant is out of sight"
    assert {text(one, "publicAccess") for one in recorded().of(":BlobContainer")} == {"None"}, (
        "nor any container"
    )


def test_plain_text_and_old_tls_are_refused() -> None:
    inputs = account().inputs
    assert inputs["enableHttpsTrafficOnly"] is True, "a checkpoint is not sent in plain text"
    assert inputs["minimumTlsVersion"] == "TLS1_2", "nor under a protocol that is broken"


@pytest.mark.parametrize("retain_days", [1, 30, 365])
def test_what_was_overwritten_or_deleted_can_be_had_back_for_the_days_that_were_asked_for(
    retain_days: int,
) -> None:
    recording = recorded(replace(ARGS, retain_days=retain_days))
    service = recording.one(":BlobServiceProperties").inputs
    assert service["isVersioningEnabled"] is True, "what was overwritten is a version"
    wanted = {"enabled": True, "days": retain_days}
    assert service["deleteRetentionPolicy"] == wanted, "counted from when a version is deleted"
    assert service["containerDeleteRetentionPolicy"] == wanted, "and a namespace that was dropped by mistake"


def test_old_versions_end_and_current_blobs_never_do() -> None:
    (rule,) = objects(recorded().one(":ManagementPolicy"), "policy", "rules")
    actions = mapping(rule, "definition", "actions")
    assert actions == {"version": {"delete": {"daysAfterCreationGreaterThan": 1}}}, (
        "Azure counts from when a version was written: after the days asked for, a checkpoint that was current for that "
        "long would go on the day it is overwritten; softly deleted it is kept for all of them"
    )
    assert value(rule, "definition", "filters") == {"blobTypes": ["blockBlob", "appendBlob"]}, (
        "wherever they are"
    )
    assert str(rule["name"]).isalnum(), "Azure takes letters and digits"


def test_nothing_is_written_before_it_can_be_had_back() -> None:
    recording = recorded()
    for one in (*recording.of(":BlobContainer"), recording.one(":ManagementPolicy")):
        assert "checkpoints-service" in one.depends_on, f"{one.name} needs versions and soft delete"


@pytest.mark.parametrize("redundancy", ["Standard_LRS", "Standard_ZRS"])
def test_copies_are_in_one_place_or_in_three_zones(redundancy: str) -> None:
    made = account(replace(ARGS, redundancy=redundancy))
    assert (made.inputs["kind"], made.inputs["sku"]) == ("StorageV2", {"name": redundancy}), "as asked"


def test_a_new_stack_never_meets_the_account_that_an_old_one_left() -> None:
    recording = recorded()
    assert "accountName" not in recording.one(":StorageAccount").inputs, "names are of all of Azure"
    assert "resourceGroupName" not in recording.one(":ResourceGroup").inputs, "the old group is still there"


def test_the_accounts_made_up_name_is_one_that_azure_takes() -> None:
    name = account().name
    assert name.isalnum(), "no hyphens"
    assert len(name) + 8 <= 24, "8 characters are made up"


def test_the_store_is_in_a_group_of_its_own() -> None:
    recording = recorded()
    group = recording.one(":ResourceGroup")
    for kind in KEPT[1:]:
        for one in recording.of(kind):
            assert one.inputs["resourceGroupName"] == "checkpoints-group0a1b2c3d", (
                "with the stack's group everything in it goes, whatever Pulumi retains"
            )
    assert group.inputs["location"] == "westeurope", "where the cluster is"


@pytest.mark.parametrize("protected", [True, False])
def test_a_protected_store_outlives_its_stack_with_what_guards_it(protected: bool) -> None:
    recording = recorded(replace(ARGS, protected=protected))
    for kind in KEPT:
        for one in recording.of(kind):
            assert one.protect is protected, f"{one.name}: a mere `destroy` would delete it"
            assert one.retain_on_delete is protected, (
                f"{one.name}: lifting the protection is not yet to delete it"
            )


@pytest.mark.parametrize("retain_days", [0, -1, 366])
def test_a_time_that_blob_storage_cannot_keep_is_refused_before_anything_is_made(retain_days: int) -> None:
    with pytest.raises(ValueError, match=f"for 1 to 365 days, not {retain_days}"):
        replace(ARGS, retain_days=retain_days)


@pytest.mark.parametrize("namespace", ["ai", "ml--vision", "a" * 64])
def test_a_namespace_whose_name_no_container_can_have_is_refused(namespace: str) -> None:
    with pytest.raises(ValueError, match="cannot be a container's name"):
        replace(ARGS, namespaces=[namespace])


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True))
def test_of_a_namespaces_names_all_but_the_short_and_the_doubly_hyphenated_can_be_containers(
    namespace: str,
) -> None:
    assert is_container_name(namespace) is (len(namespace) >= 3 and "--" not in namespace), (
        "Kubernetes has the stricter rules for all else"
    )
