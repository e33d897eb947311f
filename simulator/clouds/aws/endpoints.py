"""VPC endpoints: routes to a service, or a service's addresses inside a VPC."""

import hashlib
from collections.abc import Iterator, Mapping

from holdfast.scheduling.json import JsonValue
from holdfast.simulator.clouds.aws.names import named, place, text
from holdfast.simulator.clouds.aws.network import SUBNET, VPC, others
from holdfast.simulator.clouds.catalogue import Making, Rules
from holdfast.simulator.clouds.state import CloudObject

_ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
_DNS_ATTRIBUTES = {"enableDnsSupport": True, "enableDnsHostnames": False}


def _kind(making: Making) -> str:
    return text(making.inputs, "vpcEndpointType") or "Gateway"


def _prefix_list(making: Making) -> JsonValue:
    """A service's list of addresses is the same for everyone in a region."""
    service = text(making.inputs, "serviceName")
    return f"pl-{hashlib.sha256(service.encode()).hexdigest()[:8]}" if _kind(making) == "Gateway" else None


def _interfaces(making: Making) -> JsonValue:
    return [f"eni-{making.digest[at : at + 17]}" for at, _ in enumerate(named(making.inputs, "subnetIds"))]


def _same_service(making: Making) -> Iterator[CloudObject]:
    """The other endpoints of the VPC to the same service."""
    wanted = [text(making.inputs, name) for name in ("vpcId", "serviceName")]
    return (
        one
        for one in others(_ENDPOINT, making.inventory, making.id)
        if [text(one.inputs, name) for name in ("vpcId", "serviceName")] == wanted
    )


def _service_elsewhere(making: Making) -> str | None:
    service = text(making.inputs, "serviceName")
    if f".{place(making)}." not in service:
        return f"InvalidServiceName: The Vpc Endpoint Service '{service}' does not exist"
    return None


def _second_gateway_route(making: Making) -> str | None:
    taken = {table for one in _same_service(making) for table in named(one.inputs, "routeTableIds")}
    table = next((one for one in named(making.inputs, "routeTableIds") if one in taken), None)
    if table is None:
        return None
    return (
        f"RouteAlreadyExists: route table {table} already has a route with "
        f"destination-prefix-list-id {_prefix_list(making)}"
    )


def _two_in_one_zone(making: Making) -> str | None:
    zones: set[str] = set()
    for subnet in named(making.inputs, "subnetIds"):
        found = making.inventory.find(SUBNET, subnet)
        zone = text(found.computed, "availabilityZone") if found else ""
        if zone and zone in zones:
            return (
                "DuplicateSubnetsInSameZone: Found another VPC endpoint subnet in the availability zone of "
                f"{subnet}"
            )
        zones.add(zone)
    return None


def _no_names_in_vpc(making: Making) -> str | None:
    vpc = making.inventory.find(VPC, text(making.inputs, "vpcId"))
    if vpc is None or making.inputs.get("privateDnsEnabled") is not True:
        return None
    if all(vpc.inputs.get(name, default) is True for name, default in _DNS_ATTRIBUTES.items()):
        return None
    return (
        "InvalidParameter: Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC "
        f"attributes set to true for {vpc.id}"
    )


def _name_taken(making: Making) -> str | None:
    if making.inputs.get("privateDnsEnabled") is not True:
        return None
    if not any(one.inputs.get("privateDnsEnabled") is True for one in _same_service(making)):
        return None
    service = text(making.inputs, "serviceName").rpartition(f"{place(making)}.")[2]
    return (
        "InvalidParameter: private-dns-enabled cannot be set because there is already a conflicting DNS domain "
        f"for {service}.{place(making)}.amazonaws.com in the VPC {text(making.inputs, 'vpcId')}"
    )


_REFUSALS = (_service_elsewhere, _second_gateway_route, _two_in_one_zone, _no_names_in_vpc, _name_taken)

ENDPOINTS: Mapping[str, Rules] = {
    _ENDPOINT: Rules(
        immutable=frozenset({"serviceName", "vpcEndpointType", "vpcId"}),
        computed={
            "networkInterfaceIds": _interfaces,
            "prefixListId": _prefix_list,
            "state": lambda _: "available",
        },
        refuse_create=_REFUSALS,
        refuse_update=_REFUSALS,
    ),
}
