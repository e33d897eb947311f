"""Types of single Azure values (ids, zones, VM sizes), and the rules of locations, subscriptions and tenants."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from pulumi_holdfast.config.errors import format_value, region_problem
from pulumi_holdfast.config.fields import error_with_fix, matching, not_a_list
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.machines import regions, zones_of

OBJECT_ID_ALLOWED: Final = "the object id of a group, a user or a service principal in Entra ID, a GUID"
ZONE_ALLOWED: Final = "a zone: 1, 2 or 3"
VM_SIZE_ALLOWED: Final = "one VM size, such as Standard_D4ds_v5"
CLUSTER_NAME_ALLOWED: Final = "the name of an AKS cluster in resourceGroup"
RESOURCE_GROUP_ALLOWED: Final = "the name of the resource group of the existing cluster"
SUBNET_ALLOWED: Final = "the id of a subnet: /subscriptions/…/resourceGroups/…/providers/Microsoft.Network/virtualNetworks/…/subnets/…"
DISK_ENCRYPTION_SET_ALLOWED: Final = (
    "the id of a disk encryption set: /subscriptions/…/resourceGroups/…/providers/Microsoft.Compute/"
    "diskEncryptionSets/…"
)
RESERVATION_GROUP_ALLOWED: Final = (
    "the id of a capacity reservation group: /subscriptions/…/resourceGroups/…/providers/Microsoft.Compute/"
    "capacityReservationGroups/…"
)

KEY_URL_ALLOWED: Final = (
    "the URL of a key without a version: https://VAULT.vault.azure.net/keys/KEY, or of a managed HSM"
)
IDENTITY_ALLOWED: Final = (
    "the id of a managed identity: /subscriptions/…/resourceGroups/…/providers/Microsoft.ManagedIdentity/"
    "userAssignedIdentities/…"
)

WORKSPACE_ALLOWED: Final = (
    "the id of a Log Analytics workspace: /subscriptions/…/resourceGroups/…/providers/Microsoft.OperationalInsights/"
    "workspaces/…"
)
REGISTRY_ALLOWED: Final = (
    "the id of a container registry: /subscriptions/…/resourceGroups/…/providers/Microsoft.ContainerRegistry/"
    "registries/…"
)
DNS_ZONE_ALLOWED: Final = (
    "the id of a private DNS zone: /subscriptions/…/resourceGroups/…/providers/Microsoft.Network/privateDnsZones/"
    "privatelink.blob.core.windows.net"
)

_ZONES: Final = ("1", "2", "3")
_BLOB_ZONE: Final = "privatelink.blob.core.windows.net"
_NAME: Final = r"[\w().-]{1,90}"
_GUID: Final = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def is_guid(text: str) -> bool:
    """Whether a text is a GUID, the id of a subscription, a tenant or a principal."""
    return re.fullmatch(_GUID, text, re.ASCII) is not None


def _object_id(text: str) -> str:
    if not is_guid(text):
        raise error_with_fix(
            "Write the output of `az ad group show --group NAME --query id`, `az ad user show --id NAME --query id` or "
            "`az ad sp show --id APPLICATION --query id`."
        )
    return text.lower()


def _zone(value: object) -> str:
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    of_label = re.fullmatch(r"[a-z0-9]+-([1-3])", text, re.ASCII)
    if of_label:
        raise error_with_fix(f"Write {of_label[1]}: a stack has one location.")
    if text not in _ZONES:
        raise error_with_fix("Write the number of a zone of the location, such as 1.")
    return text


ObjectId = Annotated[str, AfterValidator(_object_id)]
Zone = Annotated[str, PlainValidator(_zone, json_schema_input_type=int | str)]
ListedZones = Annotated[
    tuple[Zone, ...], Field(description=f"a list of items, each {ZONE_ALLOWED}", examples=["[1, 2, 3]"])
]
DiskGib = Annotated[
    int,
    Field(alias="diskGiB", ge=30, le=2048, description="a whole number of GiB, 30 to 2048", examples=["128"]),
]
VmSize = Annotated[
    str,
    BeforeValidator(
        not_a_list(
            "Write one of them: a scale set has one VM size. If it is often out of capacity, add a pool for each size and a "
            "tier for each pool; or write `scaling: nap` under cluster, where a pool can have several sizes."
        )
    ),
]


def _resource(kind: str, command: str) -> AfterValidator:
    """A resource's id: Azure accepts its fixed parts in any case, and returns its own case."""
    path = "/".join(_NAME if part == "*" else re.escape(part) for part in kind.split("/"))
    return matching(
        rf"/subscriptions/{_GUID}/resourceGroups/{_NAME}/providers/Microsoft\.{path}",
        f"Write the output of `az {command} --query id`.",
        re.IGNORECASE,
    )


IdentityId = Annotated[
    str,
    _resource("ManagedIdentity/userAssignedIdentities/*", "identity show --resource-group GROUP --name NAME"),
]
KeyUrl = Annotated[
    str,
    matching(
        r"https://[a-zA-Z][a-zA-Z0-9-]{2,23}\.(vault|managedhsm)\.azure\.net/keys/[a-zA-Z0-9-]{1,127}",
        "Write the output of `az keyvault key show --vault-name VAULT --name KEY --query key.kid`, without the version.",
    ),
]
AksClusterName = Annotated[
    str,
    matching(
        r"[0-9A-Za-z]([0-9A-Za-z_-]{0,61}[0-9A-Za-z])?",
        "Write one that `az aks list --query [].name` prints.",
    ),
]
ResourceGroup = Annotated[
    str, matching(r"[\w().-]{0,89}[\w()-]", "Write one that `az aks list --query [].resourceGroup` prints.")
]
SubnetId = Annotated[
    str,
    _resource(
        "Network/virtualNetworks/*/subnets/*",
        "network vnet subnet show --resource-group GROUP --vnet-name NETWORK --name SUBNET",
    ),
]
DiskEncryptionSetId = Annotated[
    str,
    _resource("Compute/diskEncryptionSets/*", "disk-encryption-set show --resource-group GROUP --name NAME"),
]
WorkspaceId = Annotated[
    str,
    _resource(
        "OperationalInsights/workspaces/*",
        "monitor log-analytics workspace show --resource-group GROUP --workspace-name NAME",
    ),
]
RegistryId = Annotated[str, _resource("ContainerRegistry/registries/*", "acr show --name NAME")]
DnsZoneId = Annotated[
    str,
    _resource(
        f"Network/privateDnsZones/{_BLOB_ZONE}",
        f"network private-dns zone show --resource-group GROUP --name {_BLOB_ZONE}",
    ),
]
ReservationGroupId = Annotated[
    str,
    _resource(
        "Compute/capacityReservationGroups/*",
        "capacity reservation group show --resource-group GROUP --name NAME",
    ),
]


#: The keys of these values: the Azure provider's own, so that there are no second values.
LOCATION: Final = "azure-native:location"
SUBSCRIPTION: Final = "azure-native:subscriptionId"
TENANT: Final = "azure-native:tenantId"


def location_problem(location: str | None) -> Problem | None:
    """The problem of a stack's location; None for a known location."""
    return region_problem(
        LOCATION,
        location,
        regions("azure"),
        what="location",
        allowed="an Azure location from `az account list-locations --query [].name`",
        example="eastus2",
        # The portal shows "East US 2". Azure accepts that too, but not in the zone of a node or a NodePool.
        meant=re.sub(r"[^a-z0-9]", "", (location or "").lower()),
    )


def subscription_problem(subscription: str | None) -> Problem | None:
    """The problem of a stack's subscription; None for an id, or to use that of the credentials."""
    return _id_problem(SUBSCRIPTION, subscription, "a subscription", "az account show --query id")


def tenant_problem(tenant: str | None) -> Problem | None:
    """The problem of a stack's tenant; None for an id, or to use that of the credentials."""
    return _id_problem(TENANT, tenant, "a tenant of Entra ID", "az account show --query tenantId")


def _id_problem(key: str, given: str | None, what: str, command: str) -> Problem | None:
    if given is None or is_guid(given):
        return None
    return Problem(
        field=key,
        value=format_value(given),
        allowed=f"the id of {what}, a GUID; or nothing, for that of the credentials",
        fix=f"Write the id from `{command}`, not the name; or leave it out.",
    )


def zones_here(location: str) -> tuple[str, ...]:
    """The zones of a location by number; empty if it has none."""
    return tuple(zone.rpartition("-")[2] for zone in zones_of(location))
