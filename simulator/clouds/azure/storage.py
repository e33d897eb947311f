"""Blob Storage: what it adds and refuses."""

import re
from collections.abc import Mapping
from typing import Final

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.azure.names import group_id, no_group, said
from holdfast.simulator.clouds.catalogue import Identify, Invoke, Making, Rules
from holdfast.simulator.kubernetes_client.objects import mapping

_ACCOUNT: Final = "azure-native:storage:StorageAccount"

_ACCOUNT_NAME: Final = re.compile(r"[a-z0-9]{3,24}")
# Between hyphens something else, at both ends as well.
_CONTAINER_NAME: Final = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*")
_RETAIN_DAYS: Final = range(1, 366)


def _account_id(making: Making) -> str:
    name = making.inputs.get("accountName")
    return f"{group_id(making)}/providers/Microsoft.Storage/storageAccounts/{name}"


def _within_account(path: str) -> Identify:
    """Return how what is part of an account is identified."""
    return lambda making: f"{_account_id(making)}/{path}/{making.name}"


def _endpoints(making: Making) -> JsonValue:
    return {
        service: f"https://{making.name}.{service}.core.windows.net/"
        for service in ("blob", "dfs", "file", "queue", "table", "web")
    }


def _bad_account_name(making: Making) -> str | None:
    if _ACCOUNT_NAME.fullmatch(making.name):
        return None
    return said(
        "AccountNameInvalid",
        f"{making.name} is not a valid storage account name. Storage account name must be between 3 and 24 characters in "
        "length and use numbers and lower-case letters only.",
    )


def _no_account(making: Making) -> str | None:
    if making.inventory.find(_ACCOUNT, _account_id(making)) is not None:
        return None
    kind = making.type.rpartition(":")[2]
    return said(
        "ParentResourceNotFound",
        f"Failed to perform 'write' on resource of type '{kind}', because the parent resource "
        f"'{_account_id(making)}' could not be found.",
    )


def _bad_container_name(making: Making) -> str | None:
    if _CONTAINER_NAME.fullmatch(making.name):
        return None
    return said("InvalidResourceName", "The specifed resource name contains invalid characters.")


def _opens_what_is_closed(making: Making) -> str | None:
    """A container shows itself to the public only where its account lets any do so."""
    account = making.inventory.find(_ACCOUNT, _account_id(making))
    if making.inputs.get("publicAccess") in (None, "None") or account is None:
        return None
    if account.inputs.get("allowBlobPublicAccess") is True:
        return None
    return said("PublicAccessNotPermitted", "Public access is not permitted on this storage account.")


def _bad_retention(making: Making) -> str | None:
    for field in ("deleteRetentionPolicy", "containerDeleteRetentionPolicy"):
        policy = mapping(making.inputs.get(field))
        days = policy.get("days")
        is_whole = isinstance(days, int | float) and days in _RETAIN_DAYS
        if policy.get("enabled") is True and not is_whole:
            return said(
                "InvalidRequestPropertyValue", f"The value '{days}' is not allowed for property {field}.days."
            )
    return None


def _versions_of_a_hierarchy(making: Making) -> str | None:
    account = making.inventory.find(_ACCOUNT, _account_id(making))
    hierarchical = account is not None and account.inputs.get("isHnsEnabled") is True
    if not (hierarchical and making.inputs.get("isVersioningEnabled") is True):
        return None
    return said(
        "InvalidRequestPropertyValue",
        "Versioning is not supported for accounts with a hierarchical namespace.",
    )


def _sku(making: Making) -> JsonValue:
    given: Json = mapping(making.inputs.get("sku"))
    return {**given, "tier": str(given.get("name")).partition("_")[0]}


RESOURCES: Mapping[str, Rules] = {
    _ACCOUNT: Rules(
        name_property="accountName",
        # One of all of Azure, whose account it ever is.
        unique_within=(),
        longest_name=24,
        identify=_account_id,
        immutable=frozenset({"resourceGroupName", "location", "isHnsEnabled", "kind"}),
        computed={
            "primaryEndpoints": _endpoints,
            "primaryLocation": lambda making: making.inputs.get("location"),
            "sku": _sku,
        },
        taken=said("StorageAccountAlreadyTaken", "The storage account named {name} is already taken."),
        refuse_create=(_bad_account_name, no_group),
    ),
    "azure-native:storage:BlobServiceProperties": Rules(
        name_property="blobServicesName",
        identify=_within_account("blobServices"),
        refuse_create=(_no_account, _bad_retention, _versions_of_a_hierarchy),
        refuse_update=(_bad_retention, _versions_of_a_hierarchy),
    ),
    "azure-native:storage:BlobContainer": Rules(
        name_property="containerName",
        identify=_within_account("blobServices/default/containers"),
        refuse_create=(_no_account, _bad_container_name, _opens_what_is_closed),
        refuse_update=(_opens_what_is_closed,),
    ),
    "azure-native:storage:ManagementPolicy": Rules(
        name_property="managementPolicyName",
        identify=_within_account("managementPolicies"),
        refuse_create=(_no_account,),
    ),
}

INVOKES: Mapping[str, Invoke] = {}
