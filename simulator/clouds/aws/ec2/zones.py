"""The zones of a region, as an account sees them."""

from collections.abc import Sequence
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.scheduling.machines import zones_of
from holdfast.simulator.clouds.aws.ec2.references import named
from holdfast.simulator.clouds.aws.names import region
from holdfast.simulator.clouds.catalogue import Call

#: Where a region's zones are not known: most regions have at least as many, and fewer would hide mistakes in spreading.
_USUAL: Final = "abc"

_ABBREVIATIONS: Final = {
    "northeast": "ne",
    "northwest": "nw",
    "southeast": "se",
    "southwest": "sw",
    "central": "c",
    "north": "n",
    "south": "s",
    "east": "e",
    "west": "w",
    "gov": "g",
}


#: Letters and numbers go together but for these: nobody is shown usw1-az2 any more, and EKS does not run in it.
_OTHER_NUMBERS: Final = {"us-west-1a": 3, "us-west-1b": 1}


def zones(name: str) -> Sequence[str]:
    """Return the names of a region's zones."""
    return zones_of(name) or tuple(f"{name}{letter}" for letter in _USUAL)


def zone_id(zone: str) -> str:
    """Return a zone's id (`use1-az2` of `us-east-1b`); which id has which letter differs from account to account."""
    first, *middle, last = zone[:-1].split("-")
    abbreviated = "".join(_ABBREVIATIONS.get(part, part) for part in middle)
    number = _OTHER_NUMBERS.get(zone, ord(zone[-1]) - ord("a") + 1)
    return f"{first}{abbreviated}{last}-az{number}"


def availability_zones(call: Call) -> Json:
    """Answer `getAvailabilityZones`."""
    name = region(call.arguments, call.configuration)
    excluded = {*named(call.arguments, "excludeNames"), *named(call.arguments, "excludeZoneIds")}
    found = [zone for zone in zones(name) if not {zone, zone_id(zone)} & excluded]
    return {
        "id": name,
        "names": found,
        "zoneIds": [zone_id(zone) for zone in found],
        "groupNames": [name],
        "state": "available",
        "region": name,
    }
