"""Azure networks: virtual networks, subnets, NAT gateways and public addresses.

A referenced object that is not in the state counts as one that the user created before, unless its id is in a resource
group of the stack.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from pulumi_holdfast.ladder.json import JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.azure.names import (
    RESOURCE_GROUP,
    group_id,
    identified,
    no_group,
    said,
    same_id,
)
from pulumi_holdfast.rehearsal.clouds.catalogue import (
    Deletion,
    Identify,
    Refuse,
    RefuseDeletion,
    ResourceRequest,
    Rules,
)

VIRTUAL_NETWORK: Final = "azure-native:network:VirtualNetwork"
SUBNET: Final = "azure-native:network:Subnet"
NAT_GATEWAY: Final = "azure-native:network:NatGateway"
PRIVATE_ENDPOINT: Final = "azure-native:network:PrivateEndpoint"
PUBLIC_ADDRESS: Final = "azure-native:network:PublicIPAddress"
_CLUSTER: Final = "azure-native:containerservice:ManagedCluster"
_POOL: Final = "azure-native:containerservice:AgentPool"


def _network_of(request: ResourceRequest) -> str:
    name = request.inputs.get("virtualNetworkName")
    return f"{group_id(request)}/providers/Microsoft.Network/virtualNetworks/{name}"


def _subnet_id(request: ResourceRequest) -> str:
    return f"{_network_of(request)}/subnets/{request.name}"


def _address(request: ResourceRequest) -> JsonValue:
    # 198.51.100.0/24 is reserved for documentation.
    return f"198.51.100.{int(request.digest[:2], 16)}"


def _no_network(request: ResourceRequest) -> str | None:
    """A subnet needs its network."""
    if request.inventory.find(VIRTUAL_NETWORK, _network_of(request)) is not None:
        return None
    return said(
        "ResourceNotFound",
        f"The Resource 'Microsoft.Network/virtualNetworks/{request.inputs.get('virtualNetworkName')}' under resource "
        f"group '{request.inputs.get('resourceGroupName')}' was not found.",
    )


def _naming(kind: str, field: str) -> Refuse:
    """Return the refusal of references, in an input, to an object of the stack that does not exist."""

    def refuse(request: ResourceRequest) -> str | None:
        for named in _ids(request.inputs.get(field)):
            is_ours = any(
                same_id(named[: len(group.id) + 1], f"{group.id}/")
                for group in request.inventory.of_type(RESOURCE_GROUP)
            )
            if is_ours and not any(same_id(one.id, named) for one in request.inventory.of_type(kind)):
                return said(
                    "InvalidResourceReference",
                    f"Resource {named} referenced by resource {request.name} was not found. Please make sure that the "
                    "referenced resource exists, and that both resources are in the same region.",
                )
        return None

    return refuse


def _ids(value: JsonValue) -> list[str]:
    """Return the ids in a reference or a list of them: an id, an object with one, or a pool in a subnet."""
    several = sequence(value) or [value]
    found = (
        each if isinstance(each, str) else mapping(each).get("id") or mapping(each).get("vnetSubnetID")
        for each in several
    )
    return [str(each) for each in found if each]


def _in_use(code: str, what: str, *users: tuple[str, str], fix: str = "") -> RefuseDeletion:
    """Return the refusal to delete an object that objects of these (type, input) pairs reference."""

    def refuse(deletion: Deletion) -> str | None:
        user = next(_users(deletion, users), None)
        if user is None:
            return None
        name = deletion.target.id.rpartition("/")[2]
        return said(code, f"{what} {name} is in use by {user} and cannot be deleted.{fix}")

    return refuse


def _users(deletion: Deletion, users: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for token, field in users:
        for one in deletion.inventory.of_type(token):
            if any(same_id(named, deletion.target.id) for named in _ids(one.inputs.get(field))):
                yield one.id


def _within(parents: str, field: str, path: str) -> Identify:
    """Return the function that computes the id of a part of a resource, which `field` names."""
    return lambda request: (
        f"{group_id(request)}/providers/Microsoft.Network/{parents}/{request.inputs.get(field)}/{path}/{request.name}"
    )


RESOURCES: Mapping[str, Rules] = {
    PRIVATE_ENDPOINT: Rules(
        name_property="privateEndpointName",
        unique_within=("resourceGroupName",),
        longest_name=64,
        identify=identified("Microsoft.Network/privateEndpoints"),
        immutable=frozenset({"location", "subnet"}),
        refuse_create=(no_group,),
    ),
    "azure-native:network:PrivateDnsZoneGroup": Rules(
        name_property="privateDnsZoneGroupName",
        unique_within=("resourceGroupName", "privateEndpointName"),
        identify=_within("privateEndpoints", "privateEndpointName", "privateDnsZoneGroups"),
    ),
    "azure-native:privatedns:PrivateZone": Rules(
        name_property="privateZoneName",
        unique_within=("resourceGroupName",),
        identify=identified("Microsoft.Network/privateDnsZones"),
        immutable=frozenset({"location"}),
        refuse_create=(no_group,),
    ),
    "azure-native:privatedns:VirtualNetworkLink": Rules(
        name_property="virtualNetworkLinkName",
        unique_within=("resourceGroupName", "privateZoneName"),
        identify=_within("privateDnsZones", "privateZoneName", "virtualNetworkLinks"),
        immutable=frozenset({"location"}),
    ),
    VIRTUAL_NETWORK: Rules(
        name_property="virtualNetworkName",
        unique_within=("resourceGroupName",),
        longest_name=64,
        identify=identified("Microsoft.Network/virtualNetworks"),
        immutable=frozenset({"location"}),
        refuse_create=(no_group,),
    ),
    SUBNET: Rules(
        name_property="subnetName",
        unique_within=("resourceGroupName", "virtualNetworkName"),
        longest_name=80,
        identify=_subnet_id,
        refuse_create=(_no_network, _naming(NAT_GATEWAY, "natGateway")),
        refuse_update=(_naming(NAT_GATEWAY, "natGateway"),),
        refuse_delete=(
            # It contains the machines of a node pool, and the address of a private endpoint.
            _in_use(
                "InUseSubnetCannotBeDeleted",
                "Subnet",
                (_CLUSTER, "agentPoolProfiles"),
                (_POOL, "vnetSubnetID"),
                (PRIVATE_ENDPOINT, "subnet"),
                fix=" In order to delete the subnet, delete all the resources within the subnet. See aka.ms/deletesubnet.",
            ),
        ),
    ),
    NAT_GATEWAY: Rules(
        name_property="natGatewayName",
        unique_within=("resourceGroupName",),
        longest_name=80,
        identify=identified("Microsoft.Network/natGateways"),
        immutable=frozenset({"location", "zones"}),
        refuse_create=(no_group, _naming(PUBLIC_ADDRESS, "publicIpAddresses")),
        refuse_update=(_naming(PUBLIC_ADDRESS, "publicIpAddresses"),),
        refuse_delete=(_in_use("InUseNatGatewayCannotBeDeleted", "Nat gateway", (SUBNET, "natGateway")),),
    ),
    PUBLIC_ADDRESS: Rules(
        name_property="publicIpAddressName",
        unique_within=("resourceGroupName",),
        longest_name=80,
        identify=identified("Microsoft.Network/publicIPAddresses"),
        immutable=frozenset({"location", "publicIPAddressVersion", "publicIPPrefix", "sku", "zones"}),
        computed={"ipAddress": _address},
        refuse_create=(no_group,),
        refuse_delete=(
            _in_use(
                "PublicIPAddressCannotBeDeleted", "Public IP address", (NAT_GATEWAY, "publicIpAddresses")
            ),
        ),
    ),
}
