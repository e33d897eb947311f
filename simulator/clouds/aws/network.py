"""VPCs and subnets."""

from collections.abc import Callable, Mapping
from ipaddress import IPv4Network

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.aws.ec2.references import SUBNET, VPC, has_interface_in, others, text
from holdfast.simulator.clouds.aws.ec2.zones import zones
from holdfast.simulator.clouds.aws.names import place
from holdfast.simulator.clouds.catalogue import Making, Removal, Rules

#: What lies in a VPC and goes before it. Its own default group and tables go with it.
_CONTENTS = (
    SUBNET,
    "aws:ec2/internetGateway:InternetGateway",
    "aws:ec2/routeTable:RouteTable",
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:ec2/vpcEndpoint:VpcEndpoint",
)
_LARGEST, _SMALLEST = 16, 28


def _its_own(prefix: str, at: int) -> Callable[[Making], JsonValue]:
    """The id of a part that a VPC is born with; `at` keeps the ids of one VPC's parts apart."""
    return lambda making: f"{prefix}-{making.digest[at : at + 17]}"


def _or(name: str, default: JsonValue) -> Callable[[Making], JsonValue]:
    return lambda making: making.inputs.get(name, default)


def _default_group(making: Making) -> str:
    """Adopting a VPC's default group makes nothing: it is there since the VPC is."""
    vpc = making.inventory.find(VPC, text(making.inputs, "vpcId"))
    return text(vpc.computed, "defaultSecurityGroupId") if vpc else f"sg-{making.digest[:17]}"


def _no_range(making: Making) -> str | None:
    cidr = text(making.inputs, "cidrBlock")
    if cidr and _range(making.inputs) is None:
        return (
            f"InvalidParameterValue: Value ({cidr}) for parameter cidrBlock is invalid. "
            "This is not a valid CIDR block."
        )
    return None


def _size_of_vpc(making: Making) -> str | None:
    found = _range(making.inputs)
    if found is not None and not _has_fitting_size(found):
        return f"InvalidVpc.Range: The CIDR '{text(making.inputs, 'cidrBlock')}' is invalid."
    return None


def _range_of_subnet(making: Making) -> str | None:
    vpc = making.inventory.find(VPC, text(making.inputs, "vpcId"))
    whole, part = _range(vpc.inputs) if vpc else None, _range(making.inputs)
    if vpc is None or whole is None or part is None:
        return None
    cidr = text(making.inputs, "cidrBlock")
    if not _has_fitting_size(part) or not part.subnet_of(whole):
        return f"InvalidSubnet.Range: The CIDR '{cidr}' is invalid."
    siblings = (
        _range(one.inputs)
        for one in others(SUBNET, making.inventory, making.id)
        if one.inputs.get("vpcId") == vpc.id
    )
    if any(part.overlaps(sibling) for sibling in siblings if sibling):
        return f"InvalidSubnet.Conflict: The CIDR '{cidr}' conflicts with another subnet"
    return None


def _range(inputs: Json) -> IPv4Network | None:
    try:
        return IPv4Network(text(inputs, "cidrBlock"), strict=False)
    except ValueError:
        return None


def _has_fitting_size(found: IPv4Network) -> bool:
    return _LARGEST <= found.prefixlen <= _SMALLEST


def _zone_elsewhere(making: Making) -> str | None:
    """Which of a region's zones an account has is its own affair; one of another region no account has there."""
    zone = text(making.inputs, "availabilityZone")
    if zone and zone[:-1] != place(making):
        return (
            f"InvalidParameterValue: Value ({zone}) for parameter availabilityZone is invalid. Subnets can "
            f"currently only be created in the following availability zones: {', '.join(zones(place(making)))}."
        )
    return None


def _contents_remain(removal: Removal) -> str | None:
    vpc = removal.target.id
    contents = (one for token in _CONTENTS for one in removal.inventory.of_type(token))
    if any(one.inputs.get("vpcId") == vpc for one in contents):
        return f"DependencyViolation: The vpc '{vpc}' has dependencies and cannot be deleted."
    return None


def _interfaces_remain(removal: Removal) -> str | None:
    subnet = removal.target.id
    if has_interface_in(subnet, removal.inventory):
        return f"DependencyViolation: The subnet '{subnet}' has dependencies and cannot be deleted."
    return None


RESOURCES: Mapping[str, Rules] = {
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": Rules(
        identify=_default_group, computed={"name": lambda _: "default"}
    ),
    SUBNET: Rules(
        immutable=frozenset({"cidrBlock", "availabilityZone", "vpcId"}),
        computed={
            "availabilityZone": lambda making: text(making.inputs, "availabilityZone") or f"{place(making)}a",
        },
        refuse_create=(_no_range, _zone_elsewhere, _range_of_subnet),
        refuse_delete=(_interfaces_remain,),
    ),
    VPC: Rules(
        immutable=frozenset({"cidrBlock"}),
        computed={
            "defaultNetworkAclId": _its_own("acl", 1),
            "defaultRouteTableId": _its_own("rtb", 2),
            "defaultSecurityGroupId": _its_own("sg", 3),
            "enableDnsHostnames": _or("enableDnsHostnames", default=False),
            "enableDnsSupport": _or("enableDnsSupport", default=True),
            "instanceTenancy": _or("instanceTenancy", default="default"),
            "mainRouteTableId": _its_own("rtb", 2),
        },
        refuse_create=(_no_range, _size_of_vpc),
        refuse_delete=(_contents_remain,),
    ),
}
