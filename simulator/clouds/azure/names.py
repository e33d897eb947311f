"""Whose subscription a rehearsal is in, and how Azure names what is there."""

from typing import Final

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.catalogue import Identify, ResourceRequest


def said(code: str, message: str) -> str:
    """Return a refusal as azure-native shows it."""
    return f'Code="{code}" Message="{message}"'


#: Nobody's. The real ids are not known without an account.
SUBSCRIPTION: Final = "00000000-0000-0000-0000-000000000000"
TENANT: Final = "00000000-0000-0000-0000-000000000001"
#: The object id of whoever runs the rehearsal.
CALLER: Final = "00000000-0000-0000-0000-000000000002"

RESOURCE_GROUP: Final = "azure-native:resources:ResourceGroup"


def subscription_of(configuration: Json) -> str:
    """Return the subscription of a provider."""
    return str(configuration.get("subscriptionId") or SUBSCRIPTION)


def subscription(request: ResourceRequest) -> str:
    """Return the subscription an object is in: its provider's."""
    return subscription_of(request.configuration)


def group_id(request: ResourceRequest) -> str:
    """Return the id of the resource group an object is in."""
    return f"/subscriptions/{subscription(request)}/resourceGroups/{request.inputs.get('resourceGroupName')}"


def identified(kind: str) -> Identify:
    """Return what makes the id of a resource that is part of no other: `Microsoft.Network/natGateways`."""
    return lambda request: f"{group_id(request)}/providers/{kind}/{request.name}"


def guid(request: ResourceRequest, what: str) -> str:
    """Return an id of Azure's own form, the same for the same thing of the same object."""
    digest = request.digest
    start = sum(what.encode()) % (len(digest) - 32)
    text = digest[start : start + 32]
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def no_group(request: ResourceRequest) -> str | None:
    """Return why nothing can be made in a resource group that is not there."""
    name = request.inputs.get("resourceGroupName")
    if request.inventory.find(RESOURCE_GROUP, group_id(request)) is not None:
        return None
    return said("ResourceGroupNotFound", f"Resource group '{name}' could not be found.")


def same_id(one: object, other: object) -> bool:
    """Tell whether two ids name the same thing: Azure reads them without regard to case."""
    return str(one).lower() == str(other).lower()
