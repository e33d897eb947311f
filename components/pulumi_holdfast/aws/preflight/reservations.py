"""Queries and checks the EC2 capacity reservations of a stack's reserved pools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pulumi_aws.cloudcontrol import get_resource

from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.windows import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pulumi

    from pulumi_holdfast.aws.config.sections import AwsPlatform, AwsPool
    from pulumi_holdfast.config.preflight import CloudQueries
    from pulumi_holdfast.ladder.json import Json

#: What EC2 says of an id that no reservation of the account has, and of one that is over.
_UNKNOWN: Final = ("NotFound", "was not found", "does not exist")


@dataclass(frozen=True, kw_only=True)
class Ec2Reservation:
    """A reservation in EC2; None for missing values. `exists`: the account owns it, or it is shared with the account."""

    exists: bool = True
    instance_type: str | None = None
    zone: str | None = None
    count: int | None = None
    ends: datetime | None = None


def reservations_of(platform: AwsPlatform, queries: CloudQueries) -> Mapping[str, Ec2Reservation]:
    """The reservations of a stack's pools, by id, as far as the caller may query them."""
    found: dict[str, Ec2Reservation] = {}
    for pool in platform.pools:
        if pool.reservation is not None:
            each = queries.optional(
                f"cloudformation:GetResource and ec2:DescribeCapacityReservations ({pool.reservation.id})",
                lambda id_=pool.reservation.id: _reservation(id_, queries.options),
            )
            found |= {} if each is None else {pool.reservation.id: each}
    return found


def _reservation(reservation: str, options: pulumi.InvokeOptions) -> Ec2Reservation:
    try:
        # The provider has no function for reservations.
        answer = get_resource(type_name="AWS::EC2::CapacityReservation", identifier=reservation, opts=options)
    except Exception as error:
        if any(text in str(error) for text in _UNKNOWN):
            return Ec2Reservation(exists=False)
        raise
    return read_reservation(json.loads(answer.properties))


def read_reservation(properties: Json) -> Ec2Reservation:
    """Read the properties of `AWS::EC2::CapacityReservation`."""
    kind, zone, ends = (properties.get(name) for name in ("InstanceType", "AvailabilityZone", "EndDate"))
    count = properties.get("TotalInstanceCount") or properties.get("InstanceCount")
    return Ec2Reservation(
        instance_type=kind if isinstance(kind, str) else None,
        zone=zone if isinstance(zone, str) else None,
        count=count if isinstance(count, int) else None,
        ends=_time(ends) if isinstance(ends, str) else None,
    )


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def reservation_problems(
    platform: AwsPlatform, reservations: Mapping[str, Ec2Reservation]
) -> Iterator[Problem]:
    """The fields of the pools that contradict their reservations in EC2."""
    for index, pool in enumerate(platform.pools):
        found = None if pool.reservation is None else reservations.get(pool.reservation.id)
        if found is not None:
            yield from _contradictions(pool, found, f"{PLATFORM}.pools[{index}]")


def _contradictions(pool: AwsPool, found: Ec2Reservation, at: str) -> Iterator[Problem]:
    reservation = pool.reservation
    if reservation is None:
        return
    if not found.exists or (found.ends is not None and found.ends <= datetime.now(UTC)):
        over = "" if found.ends is None else f", which ended at {format_time(found.ends)}"
        yield Problem(
            field=f"{at}.reservation.id",
            value=f'"{reservation.id}"{over or ", which the account does not have"}',
            allowed="a reservation of this account and region, or one that is shared with it, that has not ended",
            fix="Write one that `aws ec2 describe-capacity-reservations` prints.",
        )
        return
    held = (
        ("instanceTypes", pool.instance_types or (), found.instance_type),
        ("zones", pool.zones or (), found.zone),
    )
    for field, given, value in held:
        if value is not None and value not in given:
            yield Problem(
                field=f"{at}.{field}",
                value=", ".join(given),
                allowed=f"{value}, which {reservation.id} is for",
                fix=f"Write `{field}: [{value}]`.",
            )
    if found.count is not None and pool.max_nodes > found.count:
        yield Problem(
            field=f"{at}.maxNodes",
            value=f"{pool.max_nodes}, but {reservation.id} has {found.count} machines",
            allowed="at most the machines of the reservation",
            fix=f"Write `maxNodes: {found.count}`.",
        )
    if found.ends is not None and reservation.ends != found.ends:
        given_end = "no end" if reservation.ends is None else f'"{format_time(reservation.ends)}"'
        yield Problem(
            field=f"{at}.reservation.ends",
            value=f"{given_end}, but {reservation.id} ends at {format_time(found.ends)}",
            allowed="the end of the reservation: jobs leave before it",
            fix=f'Write `ends: "{format_time(found.ends)}"`.',
        )
