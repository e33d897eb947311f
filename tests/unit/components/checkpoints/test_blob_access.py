"""A namespace's way to its own checkpoints in Blob Storage."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi import Output

from holdfast.components.checkpoints.blob import CheckpointAccess, CheckpointAccessArgs
from holdfast.components.iam.azure import STORAGE_BLOB_DATA_CONTRIBUTOR, assignment_name
from tests.support.azure_outputs import CLIENT, PRINCIPAL
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import text

SUBSCRIPTION = "11111111-1111-1111-1111-111111111111"
CONTAINER = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/kept/providers/Microsoft.Storage/storageAccounts/checkpoints0a1b2c3d"
    "/blobServices/default/containers/vision"
)
ARGS = CheckpointAccessArgs(
    resource_group="holdfast-azure-dev",
    location="westeurope",
    subscription_id=SUBSCRIPTION,
    oidc_issuer="https://westeurope.oic.prod-aks.azure.com/tenant/cluster/",
    namespace="vision",
    container_id=CONTAINER,
)


def recorded(args: CheckpointAccessArgs = ARGS, *, preview: bool = False) -> Recording:
    return record(lambda: CheckpointAccess("access", args), preview=preview)


def assignment(args: CheckpointAccessArgs = ARGS) -> Recorded:
    return recorded(args).one(":RoleAssignment")


@pytest.mark.parametrize("preview", [False, True])
def test_the_identity_is_the_trainers_of_the_namespace_in_this_cluster_and_nobody_elses(
    preview: bool,
) -> None:
    (credential,) = recorded(preview=preview).of(":FederatedIdentityCredential")
    assert credential.inputs["subject"] == "system:serviceaccount:vision:trainer", (
        "the pods of one service account"
    )
    assert credential.inputs["issuer"] == ARGS.oidc_issuer, "of one cluster"
    assert credential.inputs["audiences"] == ["api://AzureADTokenExchange"], "the one that Entra ID takes"


def test_an_identity_has_one_credential_of_the_twenty_there_is_room_for() -> None:
    recording = recorded()
    (credential,) = recording.of(":FederatedIdentityCredential")
    identity = recording.one(":UserAssignedIdentity")
    assert credential.inputs["resourceName"] == f"{identity.name}0a1b2c3d", (
        "its own: two that are written at once for one identity are refused"
    )


def test_it_is_given_the_container_and_nothing_beside_it() -> None:
    (given_role,) = recorded().of(":RoleAssignment")
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
    other = replace(ARGS, container_id=Output.from_input(CONTAINER.replace("vision", "tabular")))
    assert assignment(other).inputs["roleAssignmentName"] != wanted, "and so does every container"


def test_pods_learn_whose_identity_they_have_once_it_is_of_use() -> None:
    learned: list[str] = []
    everything: list[set[str]] = []

    def build() -> None:
        access = CheckpointAccess("access", ARGS)
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
