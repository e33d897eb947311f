"""EC2 networks: VPCs, subnets, routes, gateways, addresses, endpoints and security groups.

A referenced object that is not in the state counts as one that the user created before.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.answers import how_to_answer
from pulumi_holdfast.rehearsal.clouds.aws.names import place
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Deletion, Invoke, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.relations import find, kept_by, once, text, texts
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.errors import RehearsalError

VPC: Final = "aws:ec2/vpc:Vpc"
SUBNET: Final = "aws:ec2/subnet:Subnet"
_ADDRESS: Final = "aws:ec2/eip:Eip"
_INTERNET: Final = "aws:ec2/internetGateway:InternetGateway"
_NAT: Final = "aws:ec2/natGateway:NatGateway"
_ROUTE: Final = "aws:ec2/route:Route"
_ENDPOINT: Final = "aws:ec2/vpcEndpoint:VpcEndpoint"
_GROUP: Final = "aws:ec2/securityGroup:SecurityGroup"
_INSTANCE: Final = "aws:ec2/instance:Instance"
_CLUSTER: Final = "aws:eks/cluster:Cluster"
_RULES: Final = (
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
)

# What has network interfaces in a subnet, and with a security group.
_IN_SUBNETS: Final = (
    (_INSTANCE, "subnetId"),
    (_NAT, "subnetId"),
    (_ENDPOINT, "subnetIds"),
    (_CLUSTER, "vpcConfig.subnetIds"),
    ("aws:eks/nodeGroup:NodeGroup", "subnetIds"),
)
_WITH_GROUPS: Final = (
    (_INSTANCE, "vpcSecurityGroupIds"),
    (_ENDPOINT, "securityGroupIds"),
    (_CLUSTER, "vpcConfig.securityGroupIds"),
)
#: The types that must be deleted before their VPC. Its default group and tables are deleted with it.
_CONTENTS: Final = (SUBNET, _INTERNET, "aws:ec2/routeTable:RouteTable", _GROUP, _ENDPOINT)
_DESTINATIONS: Final = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")
_PEERS: Final = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")


def _its_own(prefix: str, at: int) -> Callable[[ResourceRequest], JsonValue]:
    """The id of a default part of a VPC; `at` makes the ids of one VPC's parts different."""
    return lambda request: f"{prefix}-{request.digest[at : at + 17]}"


def _or(name: str, default: JsonValue) -> Callable[[ResourceRequest], JsonValue]:
    return lambda request: request.inputs.get(name, default)


def _default_group(request: ResourceRequest) -> str:
    """The default group is created with the VPC, so adopting it creates nothing."""
    vpc = request.inventory.find(VPC, text(request.inputs, "vpcId"))
    return text(vpc.computed, "defaultSecurityGroupId") if vpc else f"sg-{request.digest[:17]}"


def _public_address(request: ResourceRequest) -> str:
    """An address of a range that is reserved for documentation."""
    return f"203.0.113.{int(request.digest[:2], 16)}"


def _address_of_gateway(request: ResourceRequest) -> str:
    found = request.inventory.find(_ADDRESS, text(request.inputs, "allocationId"))
    return text(found.computed, "publicIp") if found else ""


def _no_internet(request: ResourceRequest) -> str | None:
    vpc = _vpc_of(text(request.inputs, "subnetId"), request.inventory)
    has_gateway = find(request.inventory, _INTERNET, vpc, by="vpcId") is not None
    if vpc and not has_gateway and request.inputs.get("connectivityType") != "private":
        return f"Gateway.NotAttached: Network {vpc} has no Internet gateway attached"
    return None


def _addresses_remain(deletion: Deletion) -> str | None:
    vpc, inventory = text(deletion.target.inputs, "vpcId"), deletion.inventory
    if vpc and any(
        _vpc_of(text(one.inputs, "subnetId"), inventory) == vpc for one in inventory.of_type(_NAT)
    ):
        return (
            f"DependencyViolation: Network {vpc} has some mapped public address(es). "
            "Please unmap those public address(es) before detaching the gateway."
        )
    return None


def _vpc_of(subnet: str, inventory: Inventory) -> str:
    """The VPC of a subnet, "" for a subnet that is not in the state."""
    found = inventory.find(SUBNET, subnet)
    return text(found.inputs, "vpcId") if found else ""


def _prefix_list(request: ResourceRequest) -> JsonValue:
    """A service has one prefix list in a region."""
    if text(request.inputs, "vpcEndpointType") not in ("", "Gateway"):
        return None
    return f"pl-{hashlib.sha256(text(request.inputs, 'serviceName').encode()).hexdigest()[:8]}"


def _interfaces(request: ResourceRequest) -> JsonValue:
    return [f"eni-{request.digest[at : at + 17]}" for at, _ in enumerate(texts(request.inputs, "subnetIds"))]


_RULE: Final = Rules(
    refuse_create=(
        once(
            "InvalidPermission.Duplicate: the specified rule of {inputs[securityGroupId]} already exists",
            *("securityGroupId", "ipProtocol", "fromPort", "toPort", *_PEERS),
        ),
    )
)

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
        refuse_delete=(
            kept_by(
                "DependencyViolation: The subnet '{id}' has dependencies and cannot be deleted.", *_IN_SUBNETS
            ),
        ),
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
        refuse_delete=(
            kept_by(
                "DependencyViolation: The vpc '{id}' has dependencies and cannot be deleted.",
                *((token, "vpcId") for token in _CONTENTS),
            ),
        ),
    ),
    _ROUTE: Rules(
        computed={"origin": lambda _: "CreateRoute", "state": lambda _: "active"},
        refuse_create=(
            once(
                "RouteAlreadyExists: The route identified by {inputs[destinationCidrBlock]} already exists.",
                *("routeTableId", *_DESTINATIONS),
            ),
        ),
    ),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": Rules(
        refuse_create=(
            once(
                "Resource.AlreadyAssociated: the specified association for route table {inputs[routeTableId]} "
                "conflicts with an existing association",
                "subnetId",
            ),
        )
    ),
    **dict.fromkeys(_RULES, _RULE),
    _GROUP: Rules(
        longest_name=255,
        taken="InvalidGroup.Duplicate: The security group '{name}' already exists",
        refuse_delete=(
            # A group's own rules are deleted with it, also those that reference itself.
            kept_by(
                "DependencyViolation: resource {id} has a dependent object",
                *((token, "referencedSecurityGroupId") for token in _RULES),
                apart="securityGroupId",
            ),
            kept_by("DependencyViolation: resource {id} has a dependent object", *_WITH_GROUPS),
        ),
    ),
    _ADDRESS: Rules(
        computed={"allocationId": lambda request: request.id, "publicIp": _public_address},
        # AWS's answer while a NAT gateway uses the address, although the message suggests permissions.
        refuse_delete=(
            kept_by(
                "AuthFailure: You do not have permission to access the specified resource.",
                (_NAT, "allocationId"),
            ),
        ),
    ),
    # It can be attached to another VPC in place.
    _INTERNET: Rules(
        unique_within=(),
        refuse_create=(
            once(
                "InvalidParameterValue: Network {inputs[vpcId]} already has an internet gateway attached",
                "vpcId",
            ),
        ),
        refuse_delete=(_addresses_remain,),
    ),
    _NAT: Rules(computed={"publicIp": _address_of_gateway}, refuse_create=(_no_internet,)),
    _ENDPOINT: Rules(
        computed={
            "networkInterfaceIds": _interfaces,
            "prefixListId": _prefix_list,
            "state": lambda _: "available",
        }
    ),
}


def _get_subnet(call: Call) -> Json:
    id_ = str(call.arguments.get("id"))
    found = call.inventory.find(SUBNET, id_)
    if found is None:
        raise RehearsalError(f"InvalidSubnetID.NotFound: The subnet ID '{id_}' does not exist")
    return {"mapPublicIpOnLaunch": False, **found.outputs, "id": id_}


def _found(call: Call, token: str) -> list[CloudObject]:
    """The objects of a type that have the tags and the VPC of a call."""
    wanted = mapping(call.arguments.get("tags"))
    filters = [mapping(each) for each in sequence(call.arguments.get("filters"))]
    vpcs = [vpc for each in filters if each.get("name") == "vpc-id" for vpc in sequence(each.get("values"))]
    return [
        each
        for each in call.inventory.of_type(token)
        if wanted.items() <= mapping(each.outputs.get("tags")).items()
        and (not vpcs or each.outputs.get("vpcId") in vpcs)
    ]


def _get_vpc(call: Call) -> Json:
    """The VPC by its id or tags; the account's default one always exists."""
    if call.arguments.get("default") is True:
        return {"id": _DEFAULT_VPC, "cidrBlock": "172.31.0.0/16", "default": True, "enableDnsHostnames": True}
    id_ = call.arguments.get("id")
    found = [each for each in _found(call, VPC) if id_ in {None, each.id}]
    if len(found) != 1:
        raise RehearsalError(
            f"{len(found)} VPCs match. Write the result into a file, {how_to_answer(call.token, call.arguments)}, and pass "
            "it with --answers FILE"
        )
    return {"default": False, **found[0].outputs, "id": found[0].id}


def _get_subnets(call: Call) -> Json:
    """The subnets with the tags and the VPC; those of the default VPC always exist."""
    is_default = _DEFAULT_VPC in str(call.arguments.get("filters"))
    ids = [f"subnet-default-{zone}" for zone in "abc"] if is_default else []
    return {"id": "subnets", "ids": [*ids, *(each.id for each in _found(call, SUBNET))]}


def _get_ami(_: Call) -> Json:
    """An image; which one an account finds, only the account knows."""
    image = "ami-0rehearsed"
    return {"id": image, "imageId": image, "name": image, "architecture": "x86_64", "state": "available"}


_DEFAULT_VPC: Final = "vpc-default"
INVOKES: Mapping[str, Invoke] = {
    "aws:ec2/getAmi:getAmi": _get_ami,
    "aws:ec2/getSubnet:getSubnet": _get_subnet,
    "aws:ec2/getSubnets:getSubnets": _get_subnets,
    "aws:ec2/getVpc:getVpc": _get_vpc,
}
