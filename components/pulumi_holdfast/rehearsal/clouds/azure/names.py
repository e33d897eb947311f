"""Azure's ids and error format, and the subscription of the simulator."""

from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.catalogue import (
    Call,
    Compute,
    Identify,
    Refuse,
    RefuseDeletion,
    ResourceRequest,
    Rules,
)
from pulumi_holdfast.rehearsal.clouds.relations import needs_at


def said(code: str, message: str) -> str:
    """Return an error in azure-native's format."""
    return f'Code="{code}" Message="{message}"'


#: A placeholder: real ids require an account.
SUBSCRIPTION: Final = "00000000-0000-0000-0000-000000000000"
TENANT: Final = "00000000-0000-0000-0000-000000000001"
#: The object id of the caller.
CALLER: Final = "00000000-0000-0000-0000-000000000002"

RESOURCE_GROUP: Final = "azure-native:resources:ResourceGroup"


def subscription_of(configuration: Json) -> str:
    """Return the subscription of a provider."""
    return str(configuration.get("subscriptionId") or SUBSCRIPTION)


def subscription(request: ResourceRequest) -> str:
    """Return the subscription of an object: its provider's."""
    return subscription_of(request.configuration)


def group_id(request: ResourceRequest) -> str:
    """Return the id of an object's resource group."""
    return f"/subscriptions/{subscription(request)}/resourceGroups/{request.inputs.get('resourceGroupName')}"


def managed_cluster(group: str, name: object) -> str:
    """Return the id of a cluster in a resource group, which an id names."""
    return f"{group}/providers/Microsoft.ContainerService/managedClusters/{name}"


def cluster_id(request: ResourceRequest) -> str:
    """Return the id of the cluster of an object."""
    return managed_cluster(group_id(request), request.inputs.get("resourceName"))


def asked_cluster_id(call: Call) -> str:
    """Return the id of the cluster of a function call."""
    group = f"/subscriptions/{subscription_of(call.configuration)}/resourceGroups/{call.arguments.get('resourceGroupName')}"
    return managed_cluster(group, call.arguments.get("resourceName"))


def no_parent(kind: str) -> str:
    """Return the error for a part of a resource that does not exist, as a message of `needs_at`."""
    return said(
        "ParentResourceNotFound",
        f"Failed to perform 'write' on resource of type '{kind}', because the parent resource '{{value}}' could not be "
        "found.",
    )


def identified(kind: str) -> Identify:
    """Return the function that computes the id of a top-level resource of a type (`Microsoft.Network/natGateways`)."""
    return lambda request: f"{group_id(request)}/providers/{kind}/{request.name}"


def guid(request: ResourceRequest, what: str) -> str:
    """Return a stable GUID for a purpose (`what`) of an object."""
    digest = request.digest
    start = sum(what.encode()) % (len(digest) - 32)
    text = digest[start : start + 32]
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


no_group: Final = needs_at(
    RESOURCE_GROUP,
    group_id,
    said("ResourceGroupNotFound", "Resource group '{inputs[resourceGroupName]}' could not be found."),
)


def in_group(
    kind: str,
    name_property: str,
    longest_name: int | None = None,
    *,
    immutable: frozenset[str] = frozenset({"location"}),
    computed: Mapping[str, Compute] | None = None,
    creates: tuple[Refuse, ...] = (),
    updates: tuple[Refuse, ...] = (),
    deletes: tuple[RefuseDeletion, ...] = (),
) -> Rules:
    """Return the rules of a top-level resource of a type, which is in a resource group."""
    return Rules(
        name_property=name_property,
        unique_within=("resourceGroupName",),
        longest_name=longest_name,
        identify=identified(kind),
        immutable=immutable,
        computed=computed or {},
        refuse_create=(no_group, *creates),
        refuse_update=updates,
        refuse_delete=deletes,
    )
