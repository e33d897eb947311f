"""EC2's availability zones and instance type offerings."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.machines import is_sold_in, machine_catalogue, zones_of
from pulumi_holdfast.ladder.windows import parse_time
from pulumi_holdfast.rehearsal.clouds.aws.names import region
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Invoke
from pulumi_holdfast.rehearsal.clouds.relations import text, texts
from pulumi_holdfast.rehearsal.clouds.state import Inventory
from pulumi_holdfast.rehearsal.errors import RehearsalError

#: The zones of an unknown region; fewer would hide mistakes in spreading.
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


#: The zone ids that do not follow the letters: AWS no longer offers usw1-az2, which EKS does not support.
_OTHER_NUMBERS: Final = {"us-west-1a": 3, "us-west-1b": 1}


def zones(name: str) -> Sequence[str]:
    """Return the names of a region's zones."""
    return zones_of(name) or tuple(f"{name}{letter}" for letter in _USUAL)


def zone_id(zone: str) -> str:
    """Return a zone's id (`use1-az2` of `us-east-1b`); the real mapping differs between accounts."""
    first, *middle, last = zone[:-1].split("-")
    abbreviated = "".join(_ABBREVIATIONS.get(part, part) for part in middle)
    number = _OTHER_NUMBERS.get(zone, ord(zone[-1]) - ord("a") + 1)
    return f"{first}{abbreviated}{last}-az{number}"


def availability_zones(call: Call) -> Json:
    """Answer `getAvailabilityZones`."""
    name = region(call.arguments, call.configuration)
    excluded = {*texts(call.arguments, "excludeNames"), *texts(call.arguments, "excludeZoneIds")}
    found = [zone for zone in zones(name) if not {zone, zone_id(zone)} & excluded]
    return {
        "id": name,
        "names": found,
        "zoneIds": [zone_id(zone) for zone in found],
        "groupNames": [name],
        "state": "available",
        "region": name,
    }


def _instance_type_offerings(call: Call) -> Json:
    """Each zone offers all types of its region; only a real account knows which zones do."""
    where = region(call.arguments, call.configuration)
    kind = text(call.arguments, "locationType") or "region"
    pairs = [
        (machine, location)
        for machine in machine_catalogue("aws")
        if is_sold_in(machine, where)
        for location in _locations(kind, where)
        if all(_passes(one, machine, location) for one in _filters(call))
    ]
    return {
        "id": where,
        "region": where,
        "locationType": kind,
        "instanceTypes": [machine for machine, _ in pairs],
        "locations": [location for _, location in pairs],
        "locationTypes": [kind for _ in pairs],
    }


def _instance_types(call: Call) -> Json:
    """The types of a region that match the filters for name and usage class."""
    where = region(call.arguments, call.configuration)
    found = [
        name
        for name, machine in machine_catalogue("aws").items()
        if is_sold_in(name, where)
        if all(_is_like(one, name, on_spot=machine.on_spot) for one in _filters(call))
    ]
    return {"id": where, "region": where, "instanceTypes": found}


def _is_like(wanted: Json, name: str, *, on_spot: bool) -> bool:
    values = set(texts(wanted, "values"))
    bought = {"on-demand", "spot"} if on_spot else {"on-demand"}
    return {"instance-type": name in values, "supported-usage-class": bool(bought & values)}.get(
        text(wanted, "name"), True
    )


#: Only a real account knows its reservations; a test adds them to the state file, with the inputs of the resource.
EC2_RESERVATION: Final = "aws:ec2/capacityReservation:CapacityReservation"


def reservations(inventory: Inventory) -> Mapping[str, Json]:
    """Return the inputs of the reservations in the state that have not ended, by id."""
    found = {one.id: one.inputs for one in inventory.of_type(EC2_RESERVATION)}
    return {name: inputs for name, inputs in found.items() if not _is_over(inputs)}


def _is_over(reservation: Json) -> bool:
    ends = reservation.get("endDate")
    time = parse_time(ends) if isinstance(ends, str) else None
    return time is not None and time <= datetime.now(UTC)


def _service_quota(call: Call) -> Json:
    """A quota from the state, where a test added it: only a real account knows its quotas."""
    service, code = text(call.arguments, "serviceCode"), text(call.arguments, "quotaCode")
    found = call.inventory.find("aws:servicequotas/serviceQuota:ServiceQuota", f"{service}/{code}")
    if found is None:
        raise RehearsalError(f"quota {code} of {service} is not simulated; only a real account knows it")
    return {"id": found.id, "serviceCode": service, "quotaCode": code, "value": found.inputs.get("value")}


def _locations(kind: str, where: str) -> list[str]:
    if kind == "availability-zone":
        return list(zones(where))
    return [zone_id(zone) for zone in zones(where)] if kind == "availability-zone-id" else [where]


def _filters(call: Call) -> Iterator[Json]:
    found = call.arguments.get("filters")
    return (one for one in (found if isinstance(found, list) else []) if isinstance(one, Mapping))


def _passes(wanted: Json, machine: str, location: str) -> bool:
    value = {"instance-type": machine, "location": location}.get(text(wanted, "name"))
    return value is None or value in texts(wanted, "values")


INVOKES: Mapping[str, Invoke] = {
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": _instance_type_offerings,
    "aws:ec2/getInstanceTypes:getInstanceTypes": _instance_types,
    "aws:index/getAvailabilityZones:getAvailabilityZones": availability_zones,
    "aws:servicequotas/getServiceQuota:getServiceQuota": _service_quota,
}
