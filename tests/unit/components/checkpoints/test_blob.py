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

from uuid import UUID

from pulumi import Output

from holdfast.components.checkpoints.blob import CheckpointAccess, CheckpointAccessArgs
from holdfast.components.iam.azure import STORAGE_BLOB_DATA_CONTRIBUTOR, assignment_name
from tests.support.azure_outputs import CLIENT, PRINCIPAL

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
    with pytest.raises(ValueError, match=f"retain_days is {retain_days}: Blob Storage allows 1 to 365"):
        replace(ARGS, retain_days=retain_days)


@pytest.mark.parametrize("namespace", ["ai", "ml--vision", "a" * 64])
def test_a_namespace_whose_name_no_container_can_have_is_refused(namespace: str) -> None:
    with pytest.raises(ValueError, match="is no valid container name"):
        replace(ARGS, namespaces=[namespace])


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True))
def test_of_a_namespaces_names_all_but_the_short_and_the_doubly_hyphenated_can_be_containers(
    namespace: str,
) -> None:
    assert is_container_name(namespace) is (len(namespace) >= 3 and "--" not in namespace), (
        "Kubernetes has the stricter rules for all else"
    )


SUBSCRIPTION = "11111111-1111-1111-1111-111111111111"
CONTAINER = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/kept/providers/Microsoft.Storage/storageAccounts/checkpoints0a1b2c3d"
    "/blobServices/default/containers/vision"
)
ACCESS = CheckpointAccessArgs(
    resource_group="holdfast-azure-dev",
    location="westeurope",
    subscription_id=SUBSCRIPTION,
    oidc_issuer="https://westeurope.oic.prod-aks.azure.com/tenant/cluster/",
    namespace="vision",
    container_id=CONTAINER,
)


def recorded_access(args: CheckpointAccessArgs = ACCESS, *, preview: bool = False) -> Recording:
    return record(lambda: CheckpointAccess("access", args), preview=preview)


def assignment(args: CheckpointAccessArgs = ACCESS) -> Recorded:
    return recorded_access(args).one(":RoleAssignment")


@pytest.mark.parametrize("preview", [False, True])
def test_the_identity_is_the_trainers_of_the_namespace_in_this_cluster_and_nobody_elses(
    preview: bool,
) -> None:
    (credential,) = recorded_access(preview=preview).of(":FederatedIdentityCredential")
    assert credential.inputs["subject"] == "system:serviceaccount:vision:trainer", (
        "the pods of one service account"
    )
    assert credential.inputs["issuer"] == ACCESS.oidc_issuer, "of one cluster"
    assert credential.inputs["audiences"] == ["api://AzureADTokenExchange"], "the one that Entra ID takes"


def test_an_identity_has_one_credential_of_the_twenty_there_is_room_for() -> None:
    recording = recorded_access()
    (credential,) = recording.of(":FederatedIdentityCredential")
    identity = recording.one(":UserAssignedIdentity")
    assert credential.inputs["resourceName"] == f"{identity.name}0a1b2c3d", (
        "its own: two that are written at once for one identity are refused"
    )


def test_it_is_given_the_container_and_nothing_beside_it() -> None:
    (given_role,) = recorded_access().of(":RoleAssignment")
    assert given_role.inputs["scope"] == CONTAINER, "not the account, where the other namespaces' are"
    assert given_role.inputs["principalId"] == PRINCIPAL, "to the identity"
    role = text(given_role, "roleDefinitionId").rpartition("/")[2]
    assert role == STORAGE_BLOB_DATA_CONTRIBUTOR, (
        "it reads, writes and deletes; older versions are the data owner's to delete"
    )
    assert text(given_role, "roleDefinitionId").startswith(f"/subscriptions/{SUBSCRIPTION}/"), (
        "as Azure shows it: else each refresh would see a change"
    )


def test_azure_does_not_look_for_a_principal_that_it_has_only_just_made() -> None:
    assert assignment().inputs["principalType"] == "ServicePrincipal", (
        "it answers PrincipalNotFound until the directory is the same everywhere"
    )


def test_the_assignments_name_is_made_of_what_it_says() -> None:
    wanted = assignment_name(scope=CONTAINER, principal_id=PRINCIPAL, role=STORAGE_BLOB_DATA_CONTRIBUTOR)
    assert assignment().inputs["roleAssignmentName"] == wanted, "an identity that is made anew gets a new one"
    other = replace(ACCESS, container_id=Output.from_input(CONTAINER.replace("vision", "tabular")))
    assert assignment(other).inputs["roleAssignmentName"] != wanted, "and so does every container"


def test_pods_learn_whose_identity_they_have_once_it_is_of_use() -> None:
    learned: list[str] = []
    everything: list[set[str]] = []

    def build() -> None:
        access = CheckpointAccess("access", ACCESS)
        access.client_id.apply(learned.append)

        async def note() -> None:
            everything.append({str(each) for each in await access.client_id.resources()})

        Output.from_input(note()).apply(lambda _: None)

    record(build)
    assert learned == [CLIENT], "by its client id"
    assert len(everything[0]) == 3, (
        "identity, credential and assignment: who takes the id comes after them all"
    )


@given(st.text(), st.uuids().map(str), st.uuids().map(str))
def test_assignments_have_names_that_are_the_same_each_time_and_of_the_right_form(
    scope: str, principal: str, role: str
) -> None:
    name = assignment_name(scope=scope, principal_id=principal, role=role)
    assert str(UUID(name)) == name, "a GUID, as Azure wants it"
    assert name == assignment_name(scope=scope, principal_id=principal, role=role), (
        "a second run asks for the same"
    )
    assert name != assignment_name(scope=scope, principal_id=role, role=role) or principal == role, (
        "another principal cannot take the place of one that is there"
    )


def test_scopes_that_azure_takes_for_one_have_one_name() -> None:
    names = {
        assignment_name(scope=scope, principal_id=PRINCIPAL, role=STORAGE_BLOB_DATA_CONTRIBUTOR)
        for scope in (CONTAINER, CONTAINER.replace("resourceGroups", "resourcegroups"))
    }
    assert len(names) == 1, (
        "Azure does not tell small letters from capitals, and not always writes them alike"
    )
