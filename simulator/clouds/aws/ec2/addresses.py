"""Elastic addresses, and the gateways that use them."""

from collections.abc import Mapping

from holdfast.simulator.clouds.aws.ec2.references import others, text, vpc_of
from holdfast.simulator.clouds.catalogue import Making, Removal, Rules
from holdfast.simulator.clouds.state import Inventory

_ADDRESS = "aws:ec2/eip:Eip"
_INTERNET = "aws:ec2/internetGateway:InternetGateway"
_NAT = "aws:ec2/natGateway:NatGateway"


def _public_address(making: Making) -> str:
    """An address of a range that documentation keeps for itself."""
    return f"203.0.113.{int(making.digest[:2], 16)}"


def _address_of_gateway(making: Making) -> str:
    found = making.inventory.find(_ADDRESS, text(making.inputs, "allocationId"))
    return text(found.computed, "publicIp") if found else ""


def _second_internet_gateway(making: Making) -> str | None:
    vpc = text(making.inputs, "vpcId")
    if vpc and any(
        text(one.inputs, "vpcId") == vpc for one in others(_INTERNET, making.inventory, making.id)
    ):
        return f"InvalidParameterValue: Network {vpc} already has an internet gateway attached"
    return None


def _no_internet(making: Making) -> str | None:
    vpc = vpc_of(text(making.inputs, "subnetId"), making.inventory)
    attached = {text(one.inputs, "vpcId") for one in making.inventory.of_type(_INTERNET)}
    if vpc and vpc not in attached and making.inputs.get("connectivityType") != "private":
        return f"Gateway.NotAttached: Network {vpc} has no Internet gateway attached"
    return None


def _address_in_use(making: Making) -> str | None:
    address = text(making.inputs, "allocationId")
    if address and _user_of(address, making.inventory):
        return f"Resource.AlreadyAssociated: Elastic IP address {address} is already associated"
    return None


def _held_by_gateway(removal: Removal) -> str | None:
    """AWS's words do not say so, but this is what it answers while a NAT gateway holds the address."""
    if _user_of(removal.target.id, removal.inventory):
        return "AuthFailure: You do not have permission to access the specified resource."
    return None


def _addresses_remain(removal: Removal) -> str | None:
    vpc = text(removal.target.inputs, "vpcId")
    gateways = removal.inventory.of_type(_NAT)
    if vpc and any(vpc_of(text(one.inputs, "subnetId"), removal.inventory) == vpc for one in gateways):
        return (
            f"DependencyViolation: Network {vpc} has some mapped public address(es). "
            "Please unmap those public address(es) before detaching the gateway."
        )
    return None


def _user_of(address: str, inventory: Inventory) -> bool:
    return any(text(one.inputs, "allocationId") == address for one in inventory.of_type(_NAT))


RESOURCES: Mapping[str, Rules] = {
    _ADDRESS: Rules(
        computed={"allocationId": lambda making: making.id, "publicIp": _public_address},
        immutable=frozenset({"domain"}),
        refuse_delete=(_held_by_gateway,),
    ),
    # It moves between VPCs in place.
    _INTERNET: Rules(
        unique_within=(), refuse_create=(_second_internet_gateway,), refuse_delete=(_addresses_remain,)
    ),
    _NAT: Rules(
        computed={"publicIp": _address_of_gateway},
        immutable=frozenset({"allocationId", "connectivityType", "privateIp", "subnetId"}),
        refuse_create=(_no_internet, _address_in_use),
    ),
}
