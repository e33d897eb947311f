"""Blob Storage as the stand-in plays it."""

import pytest

from holdfast.simulator.clouds.azure.names import SUBSCRIPTION
from holdfast.simulator.pulumi.values import Properties
from tests.support.provider_calls import Engine, Provider, refusal

_ACCOUNT = "azure-native:storage:StorageAccount"
_CONTAINER = "azure-native:storage:BlobContainer"
_GROUP = "azure-native:resources:ResourceGroup"
_POLICY = "azure-native:storage:ManagementPolicy"
_SERVICE = "azure-native:storage:BlobServiceProperties"

_PLACE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/kept/providers/Microsoft.Storage/storageAccounts"
_INPUTS: Properties = {
    "accountName": "checkpoints0a1b2c3d",
    "resourceGroupName": "kept",
    "location": "westeurope",
    "kind": "StorageV2",
    "sku": {"name": "Standard_ZRS"},
}
_WITHIN: Properties = {"accountName": "checkpoints0a1b2c3d", "resourceGroupName": "kept"}
_VISION: Properties = {**_WITHIN, "containerName": "vision"}
_RULE: Properties = {
    "name": "OldVersions",
    "type": "Lifecycle",
    "definition": {"actions": {"version": {"delete": {"daysAfterCreationGreaterThan": 1}}}},
}


@pytest.fixture
def account(azure: Provider) -> Engine:
    """A storage account that is not made yet, in a group that is."""
    for group in ("kept", "another"):
        inputs: Properties = {"resourceGroupName": group, "location": "westeurope"}
        Engine(provider=azure, type=_GROUP, name=group).create(inputs)
    return Engine(provider=azure, type=_ACCOUNT)


@pytest.fixture
def container(azure: Provider) -> Engine:
    """A container that is not made yet."""
    return Engine(provider=azure, type=_CONTAINER)


def test_an_account_is_known_by_its_group_and_name_and_has_addresses(account: Engine) -> None:
    made, outputs = account.create(_INPUTS)
    assert made == f"{_PLACE}/checkpoints0a1b2c3d", "as Azure identifies it"
    endpoints = outputs["primaryEndpoints"]
    assert isinstance(endpoints, dict), "an object"
    assert endpoints["blob"] == "https://checkpoints0a1b2c3d.blob.core.windows.net/", (
        "as clients are given it"
    )


def test_an_accounts_name_is_one_of_all_of_azure(azure: Provider, account: Engine) -> None:
    account.create(_INPUTS)
    other = Engine(provider=azure, type=_ACCOUNT, name="two")
    reason = refusal(lambda: other.create({**_INPUTS, "resourceGroupName": "another"}))
    assert "The storage account named checkpoints0a1b2c3d is already taken." in reason, reason


@pytest.mark.parametrize("name", ["Checkpoints", "check-points", "ab", "a" * 25])
def test_an_accounts_name_has_small_letters_and_digits_alone(account: Engine, name: str) -> None:
    assert "is not a valid storage account name" in refusal(
        lambda: account.create({**_INPUTS, "accountName": name})
    ), "Azure says so only when it is asked to make it"


def test_an_account_needs_its_group(azure: Provider) -> None:
    reason = refusal(lambda: Engine(provider=azure, type=_ACCOUNT).create(_INPUTS))
    assert "Resource group 'kept' could not be found." in reason, reason


@pytest.mark.usefixtures("account")
def test_a_made_up_name_is_one_that_an_account_can_have(azure: Provider) -> None:
    unnamed = {name: value for name, value in _INPUTS.items() if name != "accountName"}
    made, outputs = Engine(provider=azure, type=_ACCOUNT, name="checkpoints").create(unnamed)
    assert str(outputs["name"]).startswith("checkpoints"), (
        "the program's name for it, and what nobody else has"
    )
    assert made.endswith(str(outputs["name"])), "which is its name in Azure"


@pytest.mark.parametrize(
    "change",
    [
        {"location": "northeurope"},
        {"resourceGroupName": "another"},
        {"isHnsEnabled": True},
        {"kind": "BlockBlobStorage"},
    ],
)
def test_what_an_account_is_made_as_it_stays(account: Engine, change: Properties) -> None:
    assert list(account.diff(_INPUTS, {**_INPUTS, **change}).replaces) == list(change), (
        "another one is another account"
    )


def test_what_is_part_of_an_account_is_known_by_it(
    azure: Provider, account: Engine, container: Engine
) -> None:
    account.create(_INPUTS)
    home = f"{_PLACE}/checkpoints0a1b2c3d"
    assert container.create(_VISION)[0] == f"{home}/blobServices/default/containers/vision", (
        "as roles name it"
    )
    service = Engine(provider=azure, type=_SERVICE)
    assert service.create({**_WITHIN, "blobServicesName": "default"})[0] == f"{home}/blobServices/default", (
        "the one there is"
    )
    policy = Engine(provider=azure, type=_POLICY)
    inputs: Properties = {**_WITHIN, "managementPolicyName": "default", "policy": {"rules": [_RULE]}}
    assert policy.create(inputs)[0] == f"{home}/managementPolicies/default", "the one there is"


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        (_CONTAINER, _VISION),
        (_SERVICE, {**_WITHIN, "blobServicesName": "default"}),
        (_POLICY, {**_WITHIN, "managementPolicyName": "default", "policy": {"rules": [_RULE]}}),
    ],
)
def test_what_is_part_of_an_account_needs_it(azure: Provider, kind: str, inputs: Properties) -> None:
    assert "ParentResourceNotFound" in refusal(lambda: Engine(provider=azure, type=kind).create(inputs)), (
        "there is none yet"
    )


@pytest.mark.parametrize("name", ["a", "ab", "vision--2", "-vision", "vision-", "Vision", "a" * 64])
def test_a_containers_name_has_no_two_hyphens_together(account: Engine, container: Engine, name: str) -> None:
    account.create(_INPUTS)
    assert "invalid characters" in refusal(lambda: container.create({**_VISION, "containerName": name})), (
        "and has 3 to 63 characters"
    )


def test_a_container_is_opened_to_nobody_where_its_account_is_closed(
    account: Engine, container: Engine
) -> None:
    account.create({**_INPUTS, "allowBlobPublicAccess": False})
    reason = refusal(lambda: container.create({**_VISION, "publicAccess": "Blob"}))
    assert "Public access is not permitted on this storage account." in reason, reason
    made, _ = container.create({**_VISION, "publicAccess": "None"})
    assert "Public access" in refusal(
        lambda: container.update(made, {**_VISION, "publicAccess": "Container"})
    ), "nor later"


@pytest.mark.parametrize("field", ["deleteRetentionPolicy", "containerDeleteRetentionPolicy"])
@pytest.mark.parametrize("days", [0, 366])
def test_soft_delete_keeps_for_a_day_at_least_and_a_year_at_most(
    azure: Provider, account: Engine, field: str, days: int
) -> None:
    account.create(_INPUTS)
    service = Engine(provider=azure, type=_SERVICE)
    inputs: Properties = {**_WITHIN, "blobServicesName": "default", field: {"enabled": True, "days": days}}
    assert "InvalidRequestPropertyValue" in refusal(lambda: service.create(inputs)), "or is off"
    assert service.create({**inputs, field: {"enabled": False}})[0], "off it says no days"


def test_an_account_with_real_folders_keeps_no_versions(azure: Provider, account: Engine) -> None:
    account.create({**_INPUTS, "isHnsEnabled": True})
    service = Engine(provider=azure, type=_SERVICE)
    inputs: Properties = {**_WITHIN, "blobServicesName": "default", "isVersioningEnabled": True}
    assert "hierarchical namespace" in refusal(lambda: service.create(inputs)), "Azure Data Lake has none"
