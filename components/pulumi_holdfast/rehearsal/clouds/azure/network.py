"""Azure networks: virtual networks, subnets, NAT gateways and public addresses.

A referenced object that is not in the state counts as one that the user created before, unless its id is in a resource
group of the stack.
"""

from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.rehearsal.clouds.azure.names import RESOURCE_GROUP, group_id, in_group, said
from pulumi_holdfast.rehearsal.clouds.catalogue import (
    Identify,
    Refuse,
    RefuseDeletion,
    ResourceRequest,
    Rules,
)
from pulumi_holdfast.rehearsal.clouds.relations import kept_by, needs, needs_at

SUBNET: Final = "azure-native:network:Subnet"
_VIRTUAL_NETWORK: Final = "azure-native:network:VirtualNetwork"
_NAT_GATEWAY: Final = "azure-native:network:NatGateway"
_PRIVATE_ENDPOINT: Final = "azure-native:network:PrivateEndpoint"
_PUBLIC_ADDRESS: Final = "azure-native:network:PublicIPAddress"


def _network_of(request: ResourceRequest) -> str:
    name = request.inputs.get("virtualNetworkName")
    return f"{group_id(request)}/providers/Microsoft.Network/virtualNetworks/{name}"


def _address(request: ResourceRequest) -> JsonValue:
    # 198.51.100.0/24 is reserved for documentation.
    return f"198.51.100.{int(request.digest[:2], 16)}"


def _is_ours(request: ResourceRequest, reference: str) -> bool:
    groups = request.inventory.of_type(RESOURCE_GROUP)
    return any(reference.lower().startswith(f"{group.id}/".lower()) for group in groups)


def _naming(kind: str, path: str) -> tuple[Refuse]:
    message = said(
        "InvalidResourceReference",
        "Resource {value} referenced by resource {name} was not found. Please make sure that the referenced resource "
        "exists, and that both resources are in the same region.",
    )
    return (needs(path, kind, message, only=_is_ours),)


def _in_use(code: str, what: str, *users: tuple[str, str], fix: str = "") -> tuple[RefuseDeletion]:
    return (
        kept_by(said(code, f"{what} {{name}} is in use by {{user}} and cannot be deleted.{fix}"), *users),
    )


def _within(parents: str, field: str, path: str) -> Identify:
    """Return the function that computes the id of a part of a resource, which `field` names."""
    return lambda request: (
        f"{group_id(request)}/providers/Microsoft.Network/{parents}/{request.inputs.get(field)}/{path}/{request.name}"
    )


_NAMES_GATEWAY: Final = _naming(_NAT_GATEWAY, "natGateway.id")
_NAMES_ADDRESSES: Final = _naming(_PUBLIC_ADDRESS, "publicIpAddresses.id")

RESOURCES: Mapping[str, Rules] = {
    _PRIVATE_ENDPOINT: in_group(
        "Microsoft.Network/privateEndpoints",
        "privateEndpointName",
        64,
        immutable=frozenset({"location", "subnet"}),
    ),
    "azure-native:network:PrivateDnsZoneGroup": Rules(
        name_property="privateDnsZoneGroupName",
        unique_within=("resourceGroupName", "privateEndpointName"),
        identify=_within("privateEndpoints", "privateEndpointName", "privateDnsZoneGroups"),
    ),
    "azure-native:privatedns:PrivateZone": in_group("Microsoft.Network/privateDnsZones", "privateZoneName"),
    "azure-native:privatedns:VirtualNetworkLink": Rules(
        name_property="virtualNetworkLinkName",
        unique_within=("resourceGroupName", "privateZoneName"),
        identify=_within("privateDnsZones", "privateZoneName", "virtualNetworkLinks"),
        immutable=frozenset({"location"}),
    ),
    _VIRTUAL_NETWORK: in_group("Microsoft.Network/virtualNetworks", "virtualNetworkName", 64),
    SUBNET: Rules(
        name_property="subnetName",
        unique_within=("resourceGroupName", "virtualNetworkName"),
        longest_name=80,
        identify=_within("virtualNetworks", "virtualNetworkName", "subnets"),
        refuse_create=(
            needs_at(
                _VIRTUAL_NETWORK,
                _network_of,
                said(
                    "ResourceNotFound",
                    "The Resource 'Microsoft.Network/virtualNetworks/{inputs[virtualNetworkName]}' under resource "
                    "group '{inputs[resourceGroupName]}' was not found.",
                ),
            ),
            *_NAMES_GATEWAY,
        ),
        refuse_update=_NAMES_GATEWAY,
        # It contains the machines of a node pool, and the address of a private endpoint.
        refuse_delete=_in_use(
            "InUseSubnetCannotBeDeleted",
            "Subnet",
            ("azure-native:containerservice:ManagedCluster", "agentPoolProfiles.vnetSubnetID"),
            ("azure-native:containerservice:AgentPool", "vnetSubnetID"),
            (_PRIVATE_ENDPOINT, "subnet.id"),
            fix=" In order to delete the subnet, delete all the resources within the subnet. See aka.ms/deletesubnet.",
        ),
    ),
    _NAT_GATEWAY: in_group(
        "Microsoft.Network/natGateways",
        "natGatewayName",
        80,
        immutable=frozenset({"location", "zones"}),
        creates=_NAMES_ADDRESSES,
        updates=_NAMES_ADDRESSES,
        deletes=_in_use("InUseNatGatewayCannotBeDeleted", "Nat gateway", (SUBNET, "natGateway.id")),
    ),
    _PUBLIC_ADDRESS: in_group(
        "Microsoft.Network/publicIPAddresses",
        "publicIpAddressName",
        80,
        immutable=frozenset({"location", "publicIPAddressVersion", "publicIPPrefix", "sku", "zones"}),
        computed={"ipAddress": _address},
        deletes=_in_use(
            "PublicIPAddressCannotBeDeleted", "Public IP address", (_NAT_GATEWAY, "publicIpAddresses.id")
        ),
    ),
}
