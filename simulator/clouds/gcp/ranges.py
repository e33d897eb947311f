"""The ranges of subnetworks, which overlap none in their network."""

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import Final

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.catalogue import Making, Refuse
from holdfast.simulator.clouds.state import CloudObject
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
