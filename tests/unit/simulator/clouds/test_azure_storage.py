"""The simulated Blob Storage."""

import pytest

from holdfast.simulator.clouds.azure.names import SUBSCRIPTION
from holdfast.simulator.pulumi.values import Properties
from tests.support.clusters.provider_calls import Engine, Provider, refusal

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


@pytest.mark.usefixtures("account")
def test_an_account_has_a_global_name_and_addresses(account: Engine, azure: Provider) -> None:
    made, outputs = account.create(_INPUTS)
    assert made == f"{_PLACE}/checkpoints0a1b2c3d", "as Azure identifies it"
    endpoints = outputs["primaryEndpoints"]
    assert isinstance(endpoints, dict), "an object"
    assert endpoints["blob"] == "https://checkpoints0a1b2c3d.blob.core.windows.net/", "clients call it"
    other = Engine(provider=azure, type=_ACCOUNT, name="two")
    other.refuses_create(
        {**_INPUTS, "resourceGroupName": "another"},
        "The storage account named checkpoints0a1b2c3d is already taken.",
    )
    unnamed = {name: value for name, value in _INPUTS.items() if name != "accountName"}
    made, outputs = Engine(provider=azure, type=_ACCOUNT, name="checkpoints").create(unnamed)
    assert str(outputs["name"]).startswith("checkpoints"), "the logical name with a unique suffix"
    assert made.endswith(str(outputs["name"])), "which is its name in Azure"


def test_an_account_needs_its_group(azure: Provider) -> None:
    Engine(provider=azure, type=_ACCOUNT).refuses_create(_INPUTS, "Resource group 'kept' could not be found.")


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
    assert list(account.diff(_INPUTS, {**_INPUTS, **change}).replaces) == list(change), "it is replaced"


def test_what_is_part_of_an_account_is_known_by_it(
    azure: Provider, account: Engine, container: Engine
) -> None:
    account.create(_INPUTS)
    home = f"{_PLACE}/checkpoints0a1b2c3d"
    assert container.create(_VISION)[0] == f"{home}/blobServices/default/containers/vision", "roles name it"
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
