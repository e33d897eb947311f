"""Azure storage accounts, containers, and their settings."""

from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.clouds.azure.cluster import identity
from pulumi_holdfast.rehearsal.clouds.azure.names import group_id, no_group, no_parent, said
from pulumi_holdfast.rehearsal.clouds.catalogue import ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.relations import needs_at

_ACCOUNT: Final = "azure-native:storage:StorageAccount"


def _account_id(request: ResourceRequest) -> str:
    name = request.inputs.get("accountName")
    return f"{group_id(request)}/providers/Microsoft.Storage/storageAccounts/{name}"


def _part(name_property: str, kind: str, path: str) -> Rules:
    """Return the rules of a part of an account."""
    return Rules(
        name_property=name_property,
        identify=lambda request: f"{_account_id(request)}/{path}/{request.name}",
        refuse_create=(needs_at(_ACCOUNT, _account_id, no_parent(kind)),),
    )


def _endpoints(request: ResourceRequest) -> JsonValue:
    return {
        service: f"https://{request.name}.{service}.core.windows.net/"
        for service in ("blob", "dfs", "file", "queue", "table", "web")
    }


def _sku(request: ResourceRequest) -> JsonValue:
    given: Json = mapping(request.inputs.get("sku"))
    return {**given, "tier": str(given.get("name")).partition("_")[0]}


RESOURCES: Mapping[str, Rules] = {
    _ACCOUNT: Rules(
        name_property="accountName",
        # Names are unique in all of Azure.
        unique_within=(),
        longest_name=24,
        identify=_account_id,
        immutable=frozenset({"resourceGroupName", "location", "isHnsEnabled"}),
        computed={
            "identity": identity,
            "primaryEndpoints": _endpoints,
            "primaryLocation": lambda request: request.inputs.get("location"),
            "sku": _sku,
        },
        taken=said("StorageAccountAlreadyTaken", "The storage account named {name} is already taken."),
        refuse_create=(no_group,),
    ),
    "azure-native:storage:BlobServiceProperties": _part(
        "blobServicesName", "BlobServiceProperties", "blobServices"
    ),
    "azure-native:storage:BlobContainer": _part(
        "containerName", "BlobContainer", "blobServices/default/containers"
    ),
    "azure-native:storage:ManagementPolicy": _part(
        "managementPolicyName", "ManagementPolicy", "managementPolicies"
    ),
}
