"""What an object names, and who names an object."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.state import CloudObject, Inventory

VPC: Final = "aws:ec2/vpc:Vpc"
SUBNET: Final = "aws:ec2/subnet:Subnet"

#: Whatever has network interfaces, with the paths of the subnets they are in and of the security groups they carry.
_INTERFACES: Final[Mapping[str, tuple[str, str]]] = {
    "aws:ec2/instance:Instance": ("subnetId", "vpcSecurityGroupIds"),
    "aws:ec2/natGateway:NatGateway": ("subnetId", ""),
    "aws:ec2/vpcEndpoint:VpcEndpoint": ("subnetIds", "securityGroupIds"),
    "aws:eks/cluster:Cluster": ("vpcConfig.subnetIds", "vpcConfig.securityGroupIds"),
    "aws:eks/nodeGroup:NodeGroup": ("subnetIds", ""),
}


def named(values: Json, path: str) -> tuple[str, ...]:
    """The texts at a path of an object (`vpcConfig.subnetIds`): none, one, or a list of them."""
    found: JsonValue = values
    for step in path.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        return (found,)
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, Sequence) else ()


def text(values: Json, name: str) -> str:
    """The text at a path, "" for none."""
    return next(iter(named(values, name)), "")


def has_interface_in(subnet: str, inventory: Inventory) -> bool:
    """Tell whether anything has a network interface in a subnet."""
    return any(
        subnet in named(one.inputs, subnets)
        for token, (subnets, _) in _INTERFACES.items()
        for one in inventory.of_type(token)
    )


def has_interface_with(group: str, inventory: Inventory) -> bool:
    """Tell whether any network interface carries a security group."""
    return any(
        group in named(one.inputs, groups)
        for token, (_, groups) in _INTERFACES.items()
        for one in inventory.of_type(token)
    )


def others(token: str, inventory: Inventory, own_id: str) -> Iterator[CloudObject]:
    """The objects of a type beside one's own."""
    return (one for one in inventory.of_type(token) if one.id != own_id)


def vpc_of(subnet: str, inventory: Inventory) -> str:
    """The VPC a subnet is in, "" where the subnet is the user's own."""
    found = inventory.find(SUBNET, subnet)
    return text(found.inputs, "vpcId") if found else ""
