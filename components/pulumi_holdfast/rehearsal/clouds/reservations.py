"""Capacity reservations of simulated accounts: which exist, and which are over.

Only a real account knows its reservations. A test adds them to the state file of a cloud, with the inputs of the resource; while
it has none, their ids are not checked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.windows import parse_time
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory

#: In the state file: `{"type": …, "id": "cr-0123456789abcdef0", "urn": "", "inputs": {"instanceType": …}}`.
EC2_RESERVATION: Final = "aws:ec2/capacityReservation:CapacityReservation"
#: The id is the name, or the path of a reservation that another project shares.
GCE_RESERVATION: Final = "gcp:compute/reservation:Reservation"
AZURE_RESERVATION_GROUP: Final = "azure-native:compute:CapacityReservationGroup"

_ENDS: Final = {EC2_RESERVATION: "endDate", GCE_RESERVATION: "deleteAtTime"}


@dataclass(frozen=True, kw_only=True)
class Reservations:
    """The reservations of one kind; `are_listed`: the state has some, so that others do not exist."""

    current: Mapping[str, Json]
    are_listed: bool

    def refuses(self, reservation: str) -> bool:
        """Whether the cloud does not have a reservation, or not any more. Ids are compared in any case, as Azure does."""
        return self.are_listed and reservation.lower() not in {known.lower() for known in self.current}


def reservations(inventory: Inventory, type_token: str, now: datetime | None = None) -> Reservations:
    """Return the reservations of a type that are not over at a time."""
    at = now or datetime.now(UTC)
    found = inventory.of_type(type_token)
    return Reservations(
        current={one.id: one.inputs for one in found if not _is_over(one, at)}, are_listed=bool(found)
    )


def _is_over(one: CloudObject, now: datetime) -> bool:
    ends = one.inputs.get(_ENDS.get(one.type, ""))
    time = parse_time(ends) if isinstance(ends, str) else None
    return time is not None and time <= now


def named_by_node_pool(node_pool: Json) -> tuple[str, ...]:
    """Return the reservations that the configuration of a GKE node pool names, without their blocks."""
    affinity = mapping(mapping(node_pool.get("nodeConfig")).get("reservationAffinity"))
    if affinity.get("consumeReservationType") != "SPECIFIC_RESERVATION":
        return ()
    return tuple(str(name).partition("/reservationBlocks/")[0] for name in sequence(affinity.get("values")))
