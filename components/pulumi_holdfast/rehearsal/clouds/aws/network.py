"""EC2 networks: VPCs, subnets, routes, gateways, addresses and security groups.

A referenced object that is not in the state counts as one that the user created before.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.clouds.aws.names import named, place, text
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Deletion, Invoke, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.errors import RehearsalError

VPC: Final = "aws:ec2/vpc:Vpc"
SUBNET: Final = "aws:ec2/subnet:Subnet"

#: The types with network interfaces, with the paths of their subnets and security groups.
_INTERFACES: Final[Mapping[str, tuple[str, str]]] = {
    "aws:ec2/instance:Instance": ("subnetId", "vpcSecurityGroupIds"),
    "aws:ec2/natGateway:NatGateway": ("subnetId", ""),
    "aws:ec2/vpcEndpoint:VpcEndpoint": ("subnetIds", "securityGroupIds"),
    "aws:eks/cluster:Cluster": ("vpcConfig.subnetIds", "vpcConfig.securityGroupIds"),
    "aws:eks/nodeGroup:NodeGroup": ("subnetIds", ""),
}


def has_interface_in(subnet: str, inventory: Inventory) -> bool:
    """Whether a subnet contains a network interface."""
    return any(
        subnet in named(one.inputs, subnets)
        for token, (subnets, _) in _INTERFACES.items()
        for one in inventory.of_type(token)
    )


def has_interface_with(group: str, inventory: Inventory) -> bool:
    """Whether a network interface uses a security group."""
    return any(
        group in named(one.inputs, groups)
        for token, (_, groups) in _INTERFACES.items()
        for one in inventory.of_type(token)
    )


def others(token: str, inventory: Inventory, own_id: str) -> Iterator[CloudObject]:
    """Return the other objects of a type."""
    return (one for one in inventory.of_type(token) if one.id != own_id)


def vpc_of(subnet: str, inventory: Inventory) -> str:
    """Return the VPC of a subnet, "" for a subnet that is not in the state."""
    found = inventory.find(SUBNET, subnet)
    return text(found.inputs, "vpcId") if found else ""


#: The types that must be deleted before their VPC. Its default group and tables are deleted with it.
_CONTENTS = (
    SUBNET,
    "aws:ec2/internetGateway:InternetGateway",
    "aws:ec2/routeTable:RouteTable",
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:ec2/vpcEndpoint:VpcEndpoint",
)
_LARGEST, _SMALLEST = 16, 28


def _its_own(prefix: str, at: int) -> Callable[[ResourceRequest], JsonValue]:
    """The id of a default part of a VPC; `at` makes the ids of one VPC's parts different."""
    return lambda request: f"{prefix}-{request.digest[at : at + 17]}"


def _or(name: str, default: JsonValue) -> Callable[[ResourceRequest], JsonValue]:
    return lambda request: request.inputs.get(name, default)


def _default_group(request: ResourceRequest) -> str:
    """The default group is created with the VPC, so adopting it creates nothing."""
    vpc = request.inventory.find(VPC, text(request.inputs, "vpcId"))
    return text(vpc.computed, "defaultSecurityGroupId") if vpc else f"sg-{request.digest[:17]}"


def _contents_remain(deletion: Deletion) -> str | None:
    vpc = deletion.target.id
    contents = (one for token in _CONTENTS for one in deletion.inventory.of_type(token))
    if any(one.inputs.get("vpcId") == vpc for one in contents):
        return f"DependencyViolation: The vpc '{vpc}' has dependencies and cannot be deleted."
    return None


def _interfaces_remain(deletion: Deletion) -> str | None:
    subnet = deletion.target.id
    if has_interface_in(subnet, deletion.inventory):
        return f"DependencyViolation: The subnet '{subnet}' has dependencies and cannot be deleted."
    return None


RESOURCES: Mapping[str, Rules] = {
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": Rules(
        identify=_default_group, computed={"name": lambda _: "default"}
    ),
    SUBNET: Rules(
        computed={
            "availabilityZone": lambda request: (
                text(request.inputs, "availabilityZone") or f"{place(request)}a"
            )
        },
        refuse_delete=(_interfaces_remain,),
    ),
    VPC: Rules(
        computed={
            "defaultNetworkAclId": _its_own("acl", 1),
            "defaultRouteTableId": _its_own("rtb", 2),
            "defaultSecurityGroupId": _its_own("sg", 3),
            "enableDnsHostnames": _or("enableDnsHostnames", default=False),
            "enableDnsSupport": _or("enableDnsSupport", default=True),
            "instanceTenancy": _or("instanceTenancy", default="default"),
            "mainRouteTableId": _its_own("rtb", 2),
        },
        refuse_delete=(_contents_remain,),
    ),
}


_ROUTE = "aws:ec2/route:Route"
_ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
_DESTINATIONS = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")


def _second_route(request: ResourceRequest) -> str | None:
    def key(inputs: Mapping[str, object]) -> tuple[object, ...]:
        return tuple(inputs.get(name) for name in ("routeTableId", *_DESTINATIONS))

    if any(key(one.inputs) == key(request.inputs) for one in others(_ROUTE, request.inventory, request.id)):
        destination = next(request.inputs[name] for name in _DESTINATIONS if request.inputs.get(name))
        return f"RouteAlreadyExists: The route identified by {destination} already exists."
    return None


def _second_table(request: ResourceRequest) -> str | None:
    subnet = text(request.inputs, "subnetId")
    siblings = others(_ASSOCIATION, request.inventory, request.id)
    if subnet and any(text(one.inputs, "subnetId") == subnet for one in siblings):
        table = text(request.inputs, "routeTableId")
        return (
            f"Resource.AlreadyAssociated: the specified association for route table {table} "
            "conflicts with an existing association"
        )
    return None


ROUTES: Mapping[str, Rules] = {
    _ROUTE: Rules(
        computed={"origin": lambda _: "CreateRoute", "state": lambda _: "active"},
        refuse_create=(_second_route,),
    ),
    _ASSOCIATION: Rules(refuse_create=(_second_table,)),
}


_GROUP = "aws:ec2/securityGroup:SecurityGroup"
_INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
_EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
_PEERS = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
_ALL_PROTOCOLS = "-1"


def _second_rule(request: ResourceRequest) -> str | None:
    group, rule = text(request.inputs, "securityGroupId"), _described(request.inputs)
    siblings = others(request.type, request.inventory, request.id)
    if any(
        (text(one.inputs, "securityGroupId"), _described(one.inputs)) == (group, rule) for one in siblings
    ):
        return f'InvalidPermission.Duplicate: the specified rule "{rule}" already exists'
    return None


def _described(inputs: Json) -> str:
    peer = next((text(inputs, name) for name in _PEERS if text(inputs, name)), "")
    if text(inputs, "ipProtocol") == _ALL_PROTOCOLS:
        return f"peer: {peer}, ALL, ALLOW"
    protocol = text(inputs, "ipProtocol").upper()
    return f"peer: {peer}, {protocol}, from port: {_port(inputs, 'fromPort')}, to port: {_port(inputs, 'toPort')}, ALLOW"


def _port(inputs: Json, name: str) -> str:
    """Format a port, of 443 and of 443.0 alike."""
    found = inputs.get(name)
    return str(int(found)) if isinstance(found, int | float | str) and found != "" else ""


def _carried_or_referred_to(deletion: Deletion) -> str | None:
    group, inventory = deletion.target.id, deletion.inventory
    rules = (*inventory.of_type(_INGRESS), *inventory.of_type(_EGRESS))
    # A group's own rules are deleted with it, also those that reference itself.
    referred_to = any(
        text(one.inputs, "referencedSecurityGroupId") == group != text(one.inputs, "securityGroupId")
        for one in rules
    )
    if referred_to or has_interface_with(group, inventory):
        return f"DependencyViolation: resource {group} has a dependent object"
    return None


SECURITY_GROUPS: Mapping[str, Rules] = {
    _EGRESS: Rules(refuse_create=(_second_rule,)),
    _GROUP: Rules(
        longest_name=255,
        taken="InvalidGroup.Duplicate: The security group '{name}' already exists",
        refuse_delete=(_carried_or_referred_to,),
    ),
    _INGRESS: Rules(refuse_create=(_second_rule,)),
}


_ADDRESS = "aws:ec2/eip:Eip"
_INTERNET = "aws:ec2/internetGateway:InternetGateway"
_NAT = "aws:ec2/natGateway:NatGateway"


def _public_address(request: ResourceRequest) -> str:
    """An address of a range that is reserved for documentation."""
    return f"203.0.113.{int(request.digest[:2], 16)}"


def _address_of_gateway(request: ResourceRequest) -> str:
    found = request.inventory.find(_ADDRESS, text(request.inputs, "allocationId"))
    return text(found.computed, "publicIp") if found else ""


def _second_internet_gateway(request: ResourceRequest) -> str | None:
    vpc = text(request.inputs, "vpcId")
    if vpc and any(
        text(one.inputs, "vpcId") == vpc for one in others(_INTERNET, request.inventory, request.id)
    ):
        return f"InvalidParameterValue: Network {vpc} already has an internet gateway attached"
    return None


def _no_internet(request: ResourceRequest) -> str | None:
    vpc = vpc_of(text(request.inputs, "subnetId"), request.inventory)
    attached = {text(one.inputs, "vpcId") for one in request.inventory.of_type(_INTERNET)}
    if vpc and vpc not in attached and request.inputs.get("connectivityType") != "private":
        return f"Gateway.NotAttached: Network {vpc} has no Internet gateway attached"
    return None


def _held_by_gateway(deletion: Deletion) -> str | None:
    """AWS's answer while a NAT gateway uses the address, although the message suggests permissions."""
    if _user_of(deletion.target.id, deletion.inventory):
        return "AuthFailure: You do not have permission to access the specified resource."
    return None


def _addresses_remain(deletion: Deletion) -> str | None:
    vpc = text(deletion.target.inputs, "vpcId")
    gateways = deletion.inventory.of_type(_NAT)
    if vpc and any(vpc_of(text(one.inputs, "subnetId"), deletion.inventory) == vpc for one in gateways):
        return (
            f"DependencyViolation: Network {vpc} has some mapped public address(es). "
            "Please unmap those public address(es) before detaching the gateway."
        )
    return None


def _user_of(address: str, inventory: Inventory) -> bool:
    return any(text(one.inputs, "allocationId") == address for one in inventory.of_type(_NAT))


GATEWAYS: Mapping[str, Rules] = {
    _ADDRESS: Rules(
        computed={"allocationId": lambda request: request.id, "publicIp": _public_address},
        refuse_delete=(_held_by_gateway,),
    ),
    # It can be attached to another VPC in place.
    _INTERNET: Rules(
        unique_within=(), refuse_create=(_second_internet_gateway,), refuse_delete=(_addresses_remain,)
    ),
    _NAT: Rules(computed={"publicIp": _address_of_gateway}, refuse_create=(_no_internet,)),
}


def _get_subnet(call: Call) -> Json:
    id_ = str(call.arguments.get("id"))
    found = call.inventory.find(SUBNET, id_)
    if found is None:
        raise RehearsalError(f"InvalidSubnetID.NotFound: The subnet ID '{id_}' does not exist")
    return {"mapPublicIpOnLaunch": False, **found.outputs, "id": id_}


INVOKES: Mapping[str, Invoke] = {"aws:ec2/getSubnet:getSubnet": _get_subnet}
