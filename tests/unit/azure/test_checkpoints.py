"""Checkpoints in Blob Storage, and access to them."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi import Output

from pulumi_holdfast.azure.checkpoints import CheckpointBucket, CheckpointBucketArgs, CustomerKey
from pulumi_holdfast.azure.identities import CheckpointAccess, CheckpointAccessArgs
from pulumi_holdfast.azure.names import is_container_name
from pulumi_holdfast.azure.private_endpoint import BlobZone, BlobZoneArgs
from pulumi_holdfast.azure.role_assignments import STORAGE_BLOB_DATA_CONTRIBUTOR, assignment_name
from tests.support.fakes.cloud_outputs import CLIENT, PRINCIPAL
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import mapping, objects, text, value

SUBSCRIPTION = "11111111-1111-1111-1111-111111111111"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml/providers"
SUBNET = f"{GROUP}/Microsoft.Network/virtualNetworks/ml/subnets/nodes"
KEY = CustomerKey(
    vault="https://ml.vault.azure.net",
    name="checkpoints",
    identity_id=f"{GROUP}/Microsoft.ManagedIdentity/userAssignedIdentities/checkpoints",
)
ARGS = CheckpointBucketArgs(
    location="westeurope", subnet_id=SUBNET, namespaces=["vision", "tabular"], retain_days=30, protected=False
)


def recorded(args: CheckpointBucketArgs = ARGS) -> Recording:
    return record(lambda: CheckpointBucket("checkpoints", args))


def test_each_namespace_has_its_own_private_container() -> None:
    recording = recorded()
    containers = recording.of(":BlobContainer")
    assert {text(one, "containerName") for one in containers} == {"vision", "tabular"}
    assert {text(one, "publicAccess") for one in containers} == {"None"}
    for one in (*containers, recording.one(":ManagementPolicy")):
        assert "checkpoints-service" in one.depends_on, f"{one.name} needs versions and soft delete"
    with pytest.raises(ValueError, match=r"'audio' is not one of .* \['tabular', 'vision'\]"):
        record(lambda: CheckpointBucket("checkpoints", ARGS).container_id("audio"))


@pytest.mark.parametrize("redundancy", ["Standard_LRS", "Standard_ZRS"])
def test_the_account_allows_only_identified_users_over_tls(redundancy: str) -> None:
    account = recorded(replace(ARGS, redundancy=redundancy)).one(":StorageAccount")
    inputs = account.inputs
    assert (inputs["kind"], inputs["sku"]) == ("StorageV2", {"name": redundancy})
    assert inputs["allowBlobPublicAccess"] is False
    assert inputs["allowSharedKeyAccess"] is False
    assert inputs["isLocalUserEnabled"] is False
    assert inputs["allowCrossTenantReplication"] is False
    assert inputs["enableHttpsTrafficOnly"] is True
    assert inputs["minimumTlsVersion"] == "TLS1_2"
    assert account.name.isalnum()
    assert len(account.name) + 8 <= 24


def test_only_the_nodes_and_allowed_addresses_reach_the_account() -> None:
    rules = mapping(recorded().one(":StorageAccount").inputs, "networkRuleSet")
    assert rules["defaultAction"] == "Deny"
    assert rules["bypass"] == "None"
    subnets = [
        (rule["virtualNetworkResourceId"], rule["action"]) for rule in objects(rules, "virtualNetworkRules")
    ]
    assert subnets == [(SUBNET, "Allow")]
    assert not objects(rules, "ipRules")
    cidrs = ["203.0.113.0/24", "198.51.100.7/32", "198.51.100.8/31"]
    account = recorded(replace(ARGS, allowed_cidrs=cidrs)).one(":StorageAccount")
    given = [rule["iPAddressOrRange"] for rule in objects(account.inputs, "networkRuleSet", "ipRules")]
    assert given == ["203.0.113.0/24", "198.51.100.7", "198.51.100.8", "198.51.100.9"]


ZONE = f"{GROUP}/Microsoft.Network/privateDnsZones/privatelink.blob.core.windows.net"


def test_a_private_endpoint_replaces_the_subnets_service_endpoint() -> None:
    recording = recorded(replace(ARGS, private_zone_id=ZONE))
    account = recording.one(":StorageAccount").inputs
    assert account["publicNetworkAccess"] == "Disabled"
    assert mapping(account, "networkRuleSet")["virtualNetworkRules"] == []
    endpoint = recording.one(":PrivateEndpoint").inputs
    assert endpoint["subnet"] == {"id": SUBNET}
    (connection,) = objects(endpoint, "privateLinkServiceConnections")
    assert connection["groupIds"] == ["blob"]
    (names,) = objects(recording.one(":PrivateDnsZoneGroup"), "privateDnsZoneConfigs")
    assert names["privateDnsZoneId"] == ZONE


def test_a_private_endpoint_leaves_the_public_addresses_that_are_allowed() -> None:
    private = replace(ARGS, private_zone_id=ZONE, allowed_cidrs=["198.51.100.0/24"])
    account = recorded(private).one(":StorageAccount").inputs
    assert account["publicNetworkAccess"] == "Enabled"
    assert mapping(account, "networkRuleSet")["defaultAction"] == "Deny"


def test_the_zone_of_private_endpoints_hides_no_other_account() -> None:
    recording = record(lambda: BlobZone("zone", BlobZoneArgs(resource_group="ml", subnet_id=SUBNET)))
    zone, link = recording.one(":PrivateZone"), recording.one(":VirtualNetworkLink").inputs
    assert zone.inputs["privateZoneName"] == "privatelink.blob.core.windows.net"
    assert link["virtualNetwork"] == {"id": SUBNET.removesuffix("/subnets/nodes")}
    assert link["resolutionPolicy"] == "NxDomainRedirect"


def test_a_key_of_the_user_encrypts_the_checkpoints() -> None:
    inputs = recorded(replace(ARGS, key=KEY)).one(":StorageAccount").inputs
    encryption = mapping(inputs, "encryption")
    assert encryption["keySource"] == "Microsoft.Keyvault"
    assert encryption["keyVaultProperties"] == {"keyName": "checkpoints", "keyVaultUri": KEY.vault}
    assert encryption["encryptionIdentity"] == {"encryptionUserAssignedIdentity": KEY.identity_id}
    assert mapping(inputs, "identity")["userAssignedIdentities"] == [KEY.identity_id]
    assert "encryption" not in recorded().one(":StorageAccount").inputs


@pytest.mark.parametrize("retain_days", [1, 365])
def test_overwritten_and_deleted_checkpoints_are_kept_for_retain_days(retain_days: int) -> None:
    service = recorded(replace(ARGS, retain_days=retain_days)).one(":BlobServiceProperties").inputs
    assert service["isVersioningEnabled"] is True
    wanted = {"enabled": True, "days": retain_days}
    assert service["deleteRetentionPolicy"] == wanted
    assert service["containerDeleteRetentionPolicy"] == wanted


def test_the_lifecycle_deletes_old_versions_and_no_current_blobs() -> None:
    (rule,) = objects(recorded().one(":ManagementPolicy"), "policy", "rules")
    actions = mapping(rule, "definition", "actions")
    assert actions == {"version": {"delete": {"daysAfterCreationGreaterThan": 1}}}
    assert value(rule, "definition", "filters") == {"blobTypes": ["blockBlob", "appendBlob"]}
    assert str(rule["name"]).isalnum()


def test_the_store_has_its_own_resource_group() -> None:
    recording = recorded()
    assert recording.one(":ResourceGroup").inputs["location"] == "westeurope"
    for one in recording:
        if one.custom and not one.type.endswith(":ResourceGroup"):
            assert one.inputs["resourceGroupName"] == "checkpoints-group0a1b2c3d"


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
    assert is_container_name(namespace) is (len(namespace) >= 3 and "--" not in namespace)


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


def recorded_access(*, preview: bool = False) -> Recording:
    return record(lambda: CheckpointAccess("access", ACCESS), preview=preview)


def assignment(args: CheckpointAccessArgs = ACCESS) -> Recorded:
    (found,) = record(lambda: CheckpointAccess("access", args)).of(":RoleAssignment")
    return found


@pytest.mark.parametrize("preview", [False, True])
def test_an_identity_has_one_credential_for_one_service_account_of_this_cluster(preview: bool) -> None:
    recording = recorded_access(preview=preview)
    (credential,) = recording.of(":FederatedIdentityCredential")
    assert credential.inputs["subject"] == "system:serviceaccount:vision:trainer"
    assert credential.inputs["issuer"] == ACCESS.oidc_issuer
    assert credential.inputs["audiences"] == ["api://AzureADTokenExchange"]
    if not preview:
        name = f"{recording.one(':UserAssignedIdentity').name}0a1b2c3d"
        assert credential.inputs["resourceName"] == name


def test_the_role_is_assigned_on_the_container_only() -> None:
    given_role = assignment()
    assert given_role.inputs["scope"] == CONTAINER
    assert given_role.inputs["principalId"] == PRINCIPAL
    assert given_role.inputs["principalType"] == "ServicePrincipal"
    role = text(given_role, "roleDefinitionId").rpartition("/")[2]
    assert role == STORAGE_BLOB_DATA_CONTRIBUTOR
    assert text(given_role, "roleDefinitionId").startswith(f"/subscriptions/{SUBSCRIPTION}/")
    wanted = assignment_name(scope=CONTAINER, principal_id=PRINCIPAL, role=STORAGE_BLOB_DATA_CONTRIBUTOR)
    assert given_role.inputs["roleAssignmentName"] == wanted
    other = replace(ACCESS, container_id=Output.from_input(CONTAINER.replace("vision", "tabular")))
    assert assignment(other).inputs["roleAssignmentName"] != wanted


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
    assert learned == [CLIENT]
    assert len(everything[0]) == 3, "pods must not use the identity before its credential and assignment"


@given(st.text(), st.uuids().map(str), st.uuids().map(str))
def test_assignment_names_are_guids_of_principal_and_scope_in_any_case(
    scope: str, principal: str, role: str
) -> None:
    name = assignment_name(scope=scope, principal_id=principal, role=role)
    assert str(UUID(name)) == name
    assert name != assignment_name(scope=scope, principal_id=role, role=role) or principal == role
    lower, upper = (
        assignment_name(scope=one, principal_id=principal, role=role)
        for one in (CONTAINER, CONTAINER.replace("resourceGroups", "resourcegroups"))
    )
    assert lower == upper
