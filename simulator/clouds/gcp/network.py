"""Networks of Google Cloud: what it adds and refuses.

What a resource names and the cloud does not hold is taken for the user's own, there before the stack was.
"""

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import Final

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.catalogue import Making, Refuse, RefuseRemoval, Removal, Rules
from holdfast.simulator.clouds.gcp.names import project
from holdfast.simulator.clouds.state import CloudObject, Inventory
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

SUBNETWORK: Final = "gcp:compute/subnetwork:Subnetwork"


def path_of(reference: JsonValue) -> str:
    """Return the id that a reference stands for: an id, or the link with the API's address before it."""
    return str(reference or "").partition("/compute/v1/")[2] or str(reference or "")


def secondary_ranges(subnetwork: CloudObject) -> Mapping[str, str]:
    """Return the secondary ranges of a subnetwork by their names."""
    found = map(mapping, sequence(subnetwork.inputs.get("secondaryIpRanges")))
    return {str(one.get("rangeName")): str(one.get("ipCidrRange")) for one in found}


def _clashing_range(making: Making) -> str | None:
    """No range of a subnetwork overlaps another one of it, or any of its neighbours in the network."""
    own = dict(_ranges(making.inputs))
    for field, cidr in own.items():
        for other, taken in own.items():
            if other < field and _overlap(cidr, taken):
                return _invalid_range(field, cidr, f"conflicts with '{taken}' of the same subnetwork.")
        for neighbour in _neighbours(making):
            if any(_overlap(cidr, taken) for _, taken in _ranges(neighbour.inputs)):
                where = f"'{neighbour.outputs.get('name')}' in region '{neighbour.outputs.get('region')}'"
                return _invalid_range(field, cidr, f"conflicts with existing subnetwork {where}.")
    return None


def _neighbours(making: Making) -> Iterator[CloudObject]:
    network = path_of(making.inputs.get("network"))
    return (
        one
        for one in making.inventory.of_type(SUBNETWORK)
        if one.id != making.id and path_of(one.inputs.get("network")) == network
    )


def _ranges(inputs: Json) -> Iterator[tuple[str, str]]:
    """The ranges that a subnetwork is made of, by the fields they are in."""
    yield "resource.ipCidrRange", str(inputs.get("ipCidrRange"))
    for at, one in enumerate(map(mapping, sequence(inputs.get("secondaryIpRanges")))):
        yield f"resource.secondaryIpRanges[{at}].ipCidrRange", str(one.get("ipCidrRange"))


def _overlap(one: str, other: str) -> bool:
    try:
        return IPv4Network(one).overlaps(IPv4Network(other))
    except ValueError:
        return False


def _no_range(making: Making) -> str | None:
    for field, cidr in _ranges(making.inputs):
        try:
            IPv4Network(cidr)
        except ValueError:
            return _invalid_range(field, cidr, "is not a valid CIDR range.")
    return None


def _invalid_range(field: str, cidr: str, why: str) -> str:
    return (
        f"googleapi: Error 400: Invalid value for field '{field}': '{cidr}'. Invalid IPCidrRange: "
        f"{cidr} {why}, invalid"
    )


#: What a subnetwork is refused for, whenever it is made or changed.
RANGE_RULES: Final[tuple[Refuse, ...]] = (_no_range, _clashing_range)


NETWORK: Final = "gcp:compute/network:Network"
ROUTER: Final = "gcp:compute/router:Router"
_NAT: Final = "gcp:compute/routerNat:RouterNat"
_CLUSTER: Final = "gcp:container/cluster:Cluster"

_API: Final = "https://www.googleapis.com/compute/v1/"
_NAME: Final = r"(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)"


def _region(making: Making) -> str:
    return str(making.inputs.get("region") or making.configuration.get("region") or "")


def _network_id(making: Making) -> str:
    return f"projects/{project(making)}/global/networks/{making.name}"


def _subnetwork_id(making: Making) -> str:
    return f"projects/{project(making)}/regions/{_region(making)}/subnetworks/{making.name}"


def _router_id(making: Making) -> str:
    return f"projects/{project(making)}/regions/{_region(making)}/routers/{making.name}"


def _nat_id(making: Making) -> str:
    return "/".join((project(making), _region(making), str(making.inputs.get("router")), making.name))


def _link(making: Making) -> str:
    return f"{_API}{making.id}"


def _bad_name(making: Making) -> str | None:
    if re.fullmatch(_NAME, making.name):
        return None
    return (
        f"googleapi: Error 400: Invalid value for field 'resource.name': '{making.name}'. "
        f"Must be a match of regex '{_NAME}', invalid"
    )


def _named_by(*users: tuple[str, str]) -> RefuseRemoval:
    """Return what refuses to delete something that objects of these types name, each in an input of its own."""

    def refuse(removal: Removal) -> str | None:
        user = next(_users(removal.target, removal.inventory, users), None)
        if user is None:
            return None
        kind = _KINDS[removal.target.type]
        return (
            f"Error waiting for Deleting {kind}: The {kind.lower()} resource '{removal.target.id}' is already being "
            f"used by '{user.id}'"
        )

    return refuse


def _users(
    target: CloudObject, inventory: Inventory, users: tuple[tuple[str, str], ...]
) -> Iterator[CloudObject]:
    names = (target.id, target.outputs.get("name"))
    for token, field in users:
        for one in inventory.of_type(token):
            named = one.inputs.get(field)
            # A gateway names the subnetworks it serves in a list of objects.
            several = [mapping(each).get("name") for each in sequence(named)] or [named]
            if any(path_of(each) in names for each in several):
                yield one


def _mappings_exclude(making: Making) -> str | None:
    dynamic, independent = (
        making.inputs.get(name) is True
        for name in ("enableDynamicPortAllocation", "enableEndpointIndependentMapping")
    )
    if not (dynamic and independent):
        return None
    return (
        "googleapi: Error 400: Invalid value for field 'resource.nats[0].enableDynamicPortAllocation': 'true'. "
        "Dynamic Port Allocation cannot be enabled with Endpoint Independent Mapping., invalid"
    )


_KINDS: Final = {NETWORK: "Network", SUBNETWORK: "Subnetwork"}

RESOURCES: Mapping[str, Rules] = {
    NETWORK: Rules(
        unique_within=("project",),
        longest_name=63,
        identify=_network_id,
        immutable=frozenset({"autoCreateSubnetworks", "description", "internalIpv6Range", "networkProfile"}),
        computed={
            "selfLink": _link,
            "numericId": lambda making: str(int(making.digest[:15], 16)),
            "gatewayIpv4": lambda _: "",
            "mtu": lambda making: making.inputs.get("mtu") or 1460,
        },
        refuse_create=(_bad_name,),
        refuse_delete=(_named_by((SUBNETWORK, "network"), (ROUTER, "network"), (_CLUSTER, "network")),),
    ),
    SUBNETWORK: Rules(
        unique_within=("project", "region"),
        longest_name=63,
        identify=_subnetwork_id,
        immutable=frozenset({"network", "description"}),
        computed={
            "selfLink": _link,
            "region": _region,
            "subnetworkId": lambda making: int(making.digest[:12], 16),
            "gatewayAddress": lambda making: str(IPv4Network(str(making.inputs.get("ipCidrRange")))[1]),
            "purpose": lambda making: making.inputs.get("purpose") or "PRIVATE",
            "stackType": lambda making: making.inputs.get("stackType") or "IPV4_ONLY",
        },
        refuse_create=(_bad_name, *RANGE_RULES),
        refuse_update=RANGE_RULES,
        refuse_delete=(_named_by((_NAT, "subnetworks"), (_CLUSTER, "subnetwork")),),
    ),
    ROUTER: Rules(
        unique_within=("project", "region"),
        longest_name=63,
        identify=_router_id,
        immutable=frozenset({"network"}),
        computed={"selfLink": _link, "region": _region},
        refuse_create=(_bad_name,),
    ),
    _NAT: Rules(
        unique_within=("project", "region", "router"),
        longest_name=63,
        identify=_nat_id,
        immutable=frozenset({"initialNatIps", "endpointTypes", "type"}),
        computed={"region": _region},
        refuse_create=(_bad_name, _mappings_exclude),
        refuse_update=(_mappings_exclude,),
    ),
}
