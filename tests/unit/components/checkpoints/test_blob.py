"""Checkpoints in Blob Storage, and access to them."""

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
from tests.support.fakes.cloud_outputs import CLIENT, PRINCIPAL

ARGS = CheckpointBucketArgs(
    location="westeurope", namespaces=["vision", "tabular"], retain_days=30, protected=False
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
    """The checkpoint URI of each namespace."""
    found: list[str] = []

    def use(bucket: CheckpointBucket) -> None:
        store: CheckpointStore = bucket
        for namespace in ("vision", "tabular"):
            store.uri(namespace).apply(found.append)

    recorded(preview=preview, use=use)
    return sorted(found)


def test_each_namespace_has_its_own_container() -> None:
    containers = recorded().of(":BlobContainer")
    assert {text(one, "containerName") for one in containers} == {"vision", "tabular"}, (
        "named like the namespace"
    )
    assert addresses() == [
        "abfss://tabular@checkpoints0a1b2c3d.dfs.core.windows.net",
        "abfss://vision@checkpoints0a1b2c3d.dfs.core.windows.net",
    ], "the URI is that of the container"


def test_a_preview_shows_no_made_up_address() -> None:
    assert addresses(preview=True) == [], "the account's generated name is unknown on preview"


@pytest.mark.parametrize("use", [CheckpointBucket.uri, CheckpointBucket.container_id])
def test_an_unknown_namespace_is_rejected(use: Callable[[CheckpointBucket, str], object]) -> None:
    with pytest.raises(
        ValueError, match=r"'audio' is not one of the store's namespaces \['tabular', 'vision'\]"
    ):
        recorded(use=lambda bucket: use(bucket, "audio"))


def test_public_access_and_shared_keys_are_disabled() -> None:
    inputs = account().inputs
    assert inputs["allowBlobPublicAccess"] is False, "whatever a container allows"
    assert inputs["allowSharedKeyAccess"] is False, "a key opens all containers and identifies no user"
    assert inputs["isLocalUserEnabled"] is False, "a local user has a separate password"
    assert inputs["allowCrossTenantReplication"] is False, "a copy in another tenant is out of control"
    assert {text(one, "publicAccess") for one in recorded().of(":BlobContainer")} == {"None"}, (
        "nor any container"
    )


def test_plain_http_and_old_tls_are_rejected() -> None:
    inputs = account().inputs
    assert inputs["enableHttpsTrafficOnly"] is True, "checkpoints are not sent unencrypted"
    assert inputs["minimumTlsVersion"] == "TLS1_2", "older versions are broken"


@pytest.mark.parametrize("retain_days", [1, 30, 365])
def test_overwritten_and_deleted_checkpoints_are_kept_for_retain_days(retain_days: int) -> None:
    recording = recorded(replace(ARGS, retain_days=retain_days))
    service = recording.one(":BlobServiceProperties").inputs
    assert service["isVersioningEnabled"] is True, "an overwritten blob becomes a version"
    wanted = {"enabled": True, "days": retain_days}
    assert service["deleteRetentionPolicy"] == wanted, "counted from the deletion of a version"
    assert service["containerDeleteRetentionPolicy"] == wanted, "also a container that was removed by mistake"


def test_the_lifecycle_deletes_old_versions_and_no_current_blobs() -> None:
    (rule,) = objects(recorded().one(":ManagementPolicy"), "policy", "rules")
    actions = mapping(rule, "definition", "actions")
    assert actions == {"version": {"delete": {"daysAfterCreationGreaterThan": 1}}}, (
        "Azure counts from when a version was written: with retain_days, a checkpoint that "
        "was current for that long would be deleted when it is overwritten; with one day it "
        "is soft-deleted and kept for all of them"
    )
    assert value(rule, "definition", "filters") == {"blobTypes": ["blockBlob", "appendBlob"]}, (
        "in all containers"
    )
    assert str(rule["name"]).isalnum(), "Azure allows letters and digits only"


def test_containers_depend_on_versioning_and_soft_delete() -> None:
    recording = recorded()
    for one in (*recording.of(":BlobContainer"), recording.one(":ManagementPolicy")):
        assert "checkpoints-service" in one.depends_on, f"{one.name} needs versions and soft delete"


@pytest.mark.parametrize("redundancy", ["Standard_LRS", "Standard_ZRS"])
def test_redundancy_is_local_or_zonal(redundancy: str) -> None:
    made = account(replace(ARGS, redundancy=redundancy))
    assert (made.inputs["kind"], made.inputs["sku"]) == ("StorageV2", {"name": redundancy}), "as configured"


def test_names_are_generated_so_that_a_new_stack_meets_no_old_account() -> None:
    recording = recorded()
    assert "accountName" not in recording.one(":StorageAccount").inputs, "account names are global in Azure"
    assert "resourceGroupName" not in recording.one(":ResourceGroup").inputs, "the old group still exists"


def test_the_generated_account_name_is_valid() -> None:
    name = account().name
    assert name.isalnum(), "no hyphens"
    assert len(name) + 8 <= 24, "8 characters are generated"


def test_the_store_has_its_own_resource_group() -> None:
    recording = recorded()
    group = recording.one(":ResourceGroup")
    for kind in KEPT[1:]:
        for one in recording.of(kind):
            assert one.inputs["resourceGroupName"] == "checkpoints-group0a1b2c3d", (
                "deleting the stack's group would delete everything in it, whatever Pulumi retains"
            )
    assert group.inputs["location"] == "westeurope", "the cluster's location"


@pytest.mark.parametrize("protected", [True, False])
def test_a_protected_store_is_retained_with_its_settings(protected: bool) -> None:
    recording = recorded(replace(ARGS, protected=protected))
    for kind in KEPT:
        for one in recording.of(kind):
            assert one.protect is protected, f"{one.name}: a plain `destroy` would delete it"
            assert one.retain_on_delete is protected, (
                f"{one.name}: removing the protection must not delete it"
            )


@pytest.mark.parametrize("retain_days", [0, -1, 366])
def test_a_retention_outside_the_limits_is_rejected(retain_days: int) -> None:
    with pytest.raises(ValueError, match=f"retain_days is {retain_days}: Blob Storage allows 1 to 365"):
        replace(ARGS, retain_days=retain_days)


@pytest.mark.parametrize("namespace", ["ai", "ml--vision", "a" * 64])
def test_a_namespace_without_a_valid_container_name_is_rejected(namespace: str) -> None:
    with pytest.raises(ValueError, match="is no valid container name"):
        replace(ARGS, namespaces=[namespace])


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True))
def test_other_namespace_names_are_valid_container_names(namespace: str) -> None:
    assert is_container_name(namespace) is (len(namespace) >= 3 and "--" not in namespace), (
        "Kubernetes is stricter in all other respects"
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
def test_the_credential_is_for_one_service_account_of_this_cluster(preview: bool) -> None:
    (credential,) = recorded_access(preview=preview).of(":FederatedIdentityCredential")
    assert credential.inputs["subject"] == "system:serviceaccount:vision:trainer", (
        "the pods of one service account"
    )
    assert credential.inputs["issuer"] == ACCESS.oidc_issuer, "of one cluster"
    assert credential.inputs["audiences"] == ["api://AzureADTokenExchange"], (
        "the audience that Entra ID accepts"
    )


def test_an_identity_has_a_single_credential() -> None:
    recording = recorded_access()
    (credential,) = recording.of(":FederatedIdentityCredential")
    identity = recording.one(":UserAssignedIdentity")
    assert credential.inputs["resourceName"] == f"{identity.name}0a1b2c3d", (
        "concurrent writes of credentials of one identity fail"
    )


def test_the_role_is_assigned_on_the_container_only() -> None:
    (given_role,) = recorded_access().of(":RoleAssignment")
    assert given_role.inputs["scope"] == CONTAINER, "not on the account, which has the other containers"
    assert given_role.inputs["principalId"] == PRINCIPAL, "to the identity"
    role = text(given_role, "roleDefinitionId").rpartition("/")[2]
    assert role == STORAGE_BLOB_DATA_CONTRIBUTOR, "it reads, writes and deletes blobs, not their old versions"
    assert text(given_role, "roleDefinitionId").startswith(f"/subscriptions/{SUBSCRIPTION}/"), (
        "as Azure returns it: otherwise each refresh shows a change"
    )


def test_the_principal_type_is_set_explicitly() -> None:
    assert assignment().inputs["principalType"] == "ServicePrincipal", (
        "otherwise Azure returns PrincipalNotFound until its directory is consistent"
    )


def test_the_assignment_name_depends_on_identity_and_container() -> None:
    wanted = assignment_name(scope=CONTAINER, principal_id=PRINCIPAL, role=STORAGE_BLOB_DATA_CONTRIBUTOR)
    assert assignment().inputs["roleAssignmentName"] == wanted, "a new identity gets a new assignment"
    other = replace(ACCESS, container_id=Output.from_input(CONTAINER.replace("vision", "tabular")))
    assert assignment(other).inputs["roleAssignmentName"] != wanted, "and so does every container"


def test_the_client_id_depends_on_credential_and_assignment() -> None:
    learned: list[str] = []
    everything: list[set[str]] = []

    def build() -> None:
        access = CheckpointAccess("access", ACCESS)
        access.client_id.apply(learned.append)

        async def note() -> None:
            everything.append({str(each) for each in await access.client_id.resources()})

        Output.from_input(note()).apply(lambda _: None)

    record(build)
    assert learned == [CLIENT], "the identity's client ID"
    assert len(everything[0]) == 3, (
        "pods must not use the identity before its credential and assignment exist"
    )


@given(st.text(), st.uuids().map(str), st.uuids().map(str))
def test_assignment_names_are_deterministic_guids(scope: str, principal: str, role: str) -> None:
    name = assignment_name(scope=scope, principal_id=principal, role=role)
    assert str(UUID(name)) == name, "Azure requires a GUID"
    assert name == assignment_name(scope=scope, principal_id=principal, role=role), (
        "a second run gets the same name"
    )
    assert name != assignment_name(scope=scope, principal_id=role, role=role) or principal == role, (
        "the principal of an assignment is immutable"
    )


def test_scopes_that_differ_in_case_have_the_same_name() -> None:
    names = {
        assignment_name(scope=scope, principal_id=PRINCIPAL, role=STORAGE_BLOB_DATA_CONTRIBUTOR)
        for scope in (CONTAINER, CONTAINER.replace("resourceGroups", "resourcegroups"))
    }
    assert len(names) == 1, "Azure ignores case and returns different ones"
