"""Google Cloud networks, subnetworks, firewall rules, routers and NATs.

A referenced object that is not in the state counts as one that the user created before.
"""

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Final

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.catalogue import (
    Call,
    Identify,
    Invoke,
    RefuseDeletion,
    ResourceRequest,
    Rules,
)
from pulumi_holdfast.rehearsal.clouds.gcp.names import asked_project, project
from pulumi_holdfast.rehearsal.clouds.relations import kept_by
from pulumi_holdfast.rehearsal.engine.values import Properties
from pulumi_holdfast.rehearsal.errors import RehearsalError

SUBNETWORK: Final = "gcp:compute/subnetwork:Subnetwork"


NETWORK: Final = "gcp:compute/network:Network"
ROUTER: Final = "gcp:compute/router:Router"
_NAT: Final = "gcp:compute/routerNat:RouterNat"
_FIREWALL: Final = "gcp:compute/firewall:Firewall"
_CLUSTER: Final = "gcp:container/cluster:Cluster"

_API: Final = "https://www.googleapis.com/compute/v1/"


def _region(request: ResourceRequest) -> str:
    return str(request.inputs.get("region") or request.configuration.get("region") or "")


def _global(kind: str) -> Identify:
    return lambda request: f"projects/{project(request)}/global/{kind}/{request.name}"


def _regional(kind: str) -> Identify:
    return lambda request: f"projects/{project(request)}/regions/{_region(request)}/{kind}/{request.name}"


def _nat_id(request: ResourceRequest) -> str:
    return "/".join((project(request), _region(request), str(request.inputs.get("router")), request.name))


def _link(request: ResourceRequest) -> str:
    return f"{_API}{request.id}"


def _shrunk(old: Properties, new: Properties) -> frozenset[str]:
    """The provider replaces a subnetwork whose new range does not contain the old one; a larger range is an update."""
    before, after = old.get("ipCidrRange"), new.get("ipCidrRange")
    if not isinstance(before, str) or not isinstance(after, str):
        return frozenset()
    grown = IPv4Network(before).subnet_of(IPv4Network(after))
    return frozenset() if grown else frozenset({"ipCidrRange"})


def _subnetwork(call: Call) -> Json:
    region = call.arguments.get("region") or call.configuration.get("region")
    name = call.arguments.get("name")
    path = f"projects/{asked_project(call)}/regions/{region}/subnetworks/{name}"
    found = call.inventory.find(SUBNETWORK, path)
    if found is None:
        raise RehearsalError(f"Subnetwork Not Found : {name}: {path} not found")
    return {**found.outputs, "id": path}


INVOKES: Mapping[str, Invoke] = {"gcp:compute/getSubnetwork:getSubnetwork": _subnetwork}


def _in_use(kind: str, *users: tuple[str, str]) -> tuple[RefuseDeletion, ...]:
    message = f"Error waiting for Deleting {kind}: The {kind.lower()} resource '{{id}}' is already being used by '{{user}}'"
    return (kept_by(message, *users), kept_by(message, *users, by="name"))


RESOURCES: Mapping[str, Rules] = {
    NETWORK: Rules(
        unique_within=("project",),
        longest_name=63,
        identify=_global("networks"),
        immutable=frozenset({"autoCreateSubnetworks", "description", "internalIpv6Range", "networkProfile"}),
        computed={
            "selfLink": _link,
            "numericId": lambda request: str(int(request.digest[:15], 16)),
            "gatewayIpv4": lambda _: "",
            "mtu": lambda request: request.inputs.get("mtu") or 1460,
        },
        refuse_delete=_in_use(
            "Network", *((token, "network") for token in (SUBNETWORK, ROUTER, _FIREWALL, _CLUSTER))
        ),
    ),
    SUBNETWORK: Rules(
        unique_within=("project", "region"),
        longest_name=63,
        identify=_regional("subnetworks"),
        immutable=frozenset({"network", "description"}),
        force_replace=_shrunk,
        computed={
            "selfLink": _link,
            "region": _region,
            "subnetworkId": lambda request: int(request.digest[:12], 16),
            "gatewayAddress": lambda request: str(IPv4Network(str(request.inputs.get("ipCidrRange")))[1]),
            "purpose": lambda request: request.inputs.get("purpose") or "PRIVATE",
            "stackType": lambda request: request.inputs.get("stackType") or "IPV4_ONLY",
        },
        refuse_delete=_in_use("Subnetwork", (_NAT, "subnetworks.name"), (_CLUSTER, "subnetwork")),
    ),
    _FIREWALL: Rules(
        unique_within=("project",),
        longest_name=63,
        identify=_global("firewalls"),
        immutable=frozenset({"direction"}),
        computed={
            "selfLink": _link,
            "creationTimestamp": lambda _: "2026-01-01T00:00:00Z",
            "direction": lambda request: request.inputs.get("direction") or "INGRESS",
        },
    ),
    ROUTER: Rules(
        unique_within=("project", "region"),
        longest_name=63,
        identify=_regional("routers"),
        immutable=frozenset({"network"}),
        computed={"selfLink": _link, "region": _region},
    ),
    _NAT: Rules(
        unique_within=("project", "region", "router"),
        longest_name=63,
        identify=_nat_id,
        immutable=frozenset({"initialNatIps", "endpointTypes", "type"}),
        computed={"region": _region},
    ),
}
