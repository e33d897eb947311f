"""VPC endpoints: gateway endpoints in route tables, and interface endpoints in subnets."""

import hashlib
from collections.abc import Iterator, Mapping

from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.rehearsal.clouds.aws.names import named, place, text
from pulumi_holdfast.rehearsal.clouds.aws.network import SUBNET, VPC, others
from pulumi_holdfast.rehearsal.clouds.catalogue import ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.state import CloudObject

_ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
_DNS_ATTRIBUTES = {"enableDnsSupport": True, "enableDnsHostnames": False}


def _kind(request: ResourceRequest) -> str:
    return text(request.inputs, "vpcEndpointType") or "Gateway"


def _prefix_list(request: ResourceRequest) -> JsonValue:
    """A service has one prefix list in a region."""
    service = text(request.inputs, "serviceName")
    return f"pl-{hashlib.sha256(service.encode()).hexdigest()[:8]}" if _kind(request) == "Gateway" else None


def _interfaces(request: ResourceRequest) -> JsonValue:
    return [f"eni-{request.digest[at : at + 17]}" for at, _ in enumerate(named(request.inputs, "subnetIds"))]


def _same_service(request: ResourceRequest) -> Iterator[CloudObject]:
    """The other endpoints of the VPC to the same service."""
    wanted = [text(request.inputs, name) for name in ("vpcId", "serviceName")]
    return (
        one
        for one in others(_ENDPOINT, request.inventory, request.id)
        if [text(one.inputs, name) for name in ("vpcId", "serviceName")] == wanted
    )


def _second_gateway_route(request: ResourceRequest) -> str | None:
    taken = {table for one in _same_service(request) for table in named(one.inputs, "routeTableIds")}
    table = next((one for one in named(request.inputs, "routeTableIds") if one in taken), None)
    if table is None:
        return None
    return (
        f"RouteAlreadyExists: route table {table} already has a route with "
        f"destination-prefix-list-id {_prefix_list(request)}"
    )


def _two_in_one_zone(request: ResourceRequest) -> str | None:
    """EC2's answer: terraform-aws-modules/terraform-aws-vpc issue 583."""
    zones: set[str] = set()
    for subnet in named(request.inputs, "subnetIds"):
        found = request.inventory.find(SUBNET, subnet)
        zone = text(found.computed, "availabilityZone") if found else ""
        if zone and zone in zones:
            return (
                "DuplicateSubnetsInSameZone: Found another VPC endpoint subnet in the availability zone of "
                f"{subnet}"
            )
        zones.add(zone)
    return None


def _no_names_in_vpc(request: ResourceRequest) -> str | None:
    vpc = request.inventory.find(VPC, text(request.inputs, "vpcId"))
    if vpc is None or request.inputs.get("privateDnsEnabled") is not True:
        return None
    if all(vpc.inputs.get(name, default) is True for name, default in _DNS_ATTRIBUTES.items()):
        return None
    return (
        "InvalidParameter: Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC "
        f"attributes set to true for {vpc.id}"
    )


def _name_taken(request: ResourceRequest) -> str | None:
    if request.inputs.get("privateDnsEnabled") is not True:
        return None
    if not any(one.inputs.get("privateDnsEnabled") is True for one in _same_service(request)):
        return None
    service = text(request.inputs, "serviceName").rpartition(f"{place(request)}.")[2]
    return (
        "InvalidParameter: private-dns-enabled cannot be set because there is already a conflicting DNS domain "
        f"for {service}.{place(request)}.amazonaws.com in the VPC {text(request.inputs, 'vpcId')}"
    )


_REFUSALS = (_second_gateway_route, _two_in_one_zone, _no_names_in_vpc, _name_taken)

ENDPOINTS: Mapping[str, Rules] = {
    _ENDPOINT: Rules(
        computed={
            "networkInterfaceIds": _interfaces,
            "prefixListId": _prefix_list,
            "state": lambda _: "available",
        },
        refuse_create=_REFUSALS,
        refuse_update=_REFUSALS,
    )
}
