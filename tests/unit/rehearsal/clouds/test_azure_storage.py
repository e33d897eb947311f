"""The simulated Blob Storage."""

import pytest

from pulumi_holdfast.rehearsal.clouds.azure.names import SUBSCRIPTION
from pulumi_holdfast.rehearsal.engine.values import Properties
from tests.support.clusters.provider_calls import Engine, Provider

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


def test_an_account_needs_its_group(azure: Provider) -> None:
    Engine(provider=azure, type=_ACCOUNT).refuses_create(_INPUTS, "Resource group 'kept' could not be found.")


@pytest.mark.parametrize(
    ("kind", "inputs", "path"),
    [
        (_CONTAINER, {"containerName": "vision"}, "blobServices/default/containers/vision"),
        (_SERVICE, {"blobServicesName": "default"}, "blobServices/default"),
        (
            _POLICY,
            {"managementPolicyName": "default", "policy": {"rules": [_RULE]}},
            "managementPolicies/default",
        ),
    ],
)
def test_what_is_part_of_an_account_needs_it_and_is_known_by_it(
    azure: Provider, account: Engine, kind: str, inputs: Properties, path: str
) -> None:
    part = Engine(provider=azure, type=kind)
    part.refuses_create({**_WITHIN, **inputs}, "ParentResourceNotFound")
    account.create(_INPUTS)
    made, _ = part.create({**_WITHIN, **inputs})
    assert made == f"{_PLACE}/checkpoints0a1b2c3d/{path}"
