"""The configuration of a pool on AWS."""

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

from pydantic import Field

from pulumi_holdfast.aws.config.fields import RESERVATION_ALLOWED, ReservationId, Zone
from pulumi_holdfast.config.reservation import ReservationSection
from pulumi_holdfast.config.stack import KarpenterPoolSection
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue, select_machines
from pulumi_holdfast.ladder.pools import Pool


class AwsReservation(ReservationSection):
    """An EC2 capacity reservation, or a Capacity Block.

    EC2 begins to terminate the instances of a block 30 minutes before its end, and Karpenter to drain them 10 minutes before
    that. A job needs some minutes more to leave by itself.
    """

    fixes: ClassVar[Mapping[str, str]] = {
        **ReservationSection.fixes,
        "capacityReservationId": "Write id.",
        "arn": "Write id.",
        "tags": "Write id: a pool has one reservation, so that a tier has one end.",
    }
    taken_back_early: ClassVar[timedelta] = timedelta(minutes=45)

    id: ReservationId = Field(description=RESERVATION_ALLOWED, examples=["cr-0123456789abcdef0"])


class AwsPool(KarpenterPoolSection):
    """Nodes of one capacity type, with instance types by name or by family and size."""

    fixes: ClassVar[Mapping[str, str]] = {
        **KarpenterPoolSection.fixes,
        "subnetIds": "Write zones; the subnets are the network's.",
        "rootVolumeSize": "Write volumeGiB.",
        "imageId": "Leave it out: all pools use the pinned image.",
        "minNodes": "Leave it out: a pool scales down to zero nodes.",
    }

    instance_types: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="a list of one instance type or more",
        examples=["[p4d.24xlarge, p4de.24xlarge]"],
    )
    families: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="a list of one family or more, together with sizes",
        examples=["[m7i, m7a, m6i]"],
    )
    sizes: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="a list of one size or more, together with families",
        examples=["[xlarge, 2xlarge]"],
    )
    zones: tuple[Zone, ...] | None = Field(
        default=None,
        min_length=1,
        description="a list of one zone or more of the stack's network",
        examples=["[us-east-1a]"],
    )
    efa: bool = Field(
        default=False,
        description="true if all machines have an Elastic Fabric Adapter, false otherwise",
        examples=["true"],
    )
    placement_group: bool = Field(
        default=False,
        description="true to place the pool's machines close together in one zone, false otherwise",
        examples=["true"],
    )
    reservation: AwsReservation | None = Field(
        default=None,
        description="a mapping of id, begins and ends, on a pool with capacity: reserved",
        examples=['{id: cr-0123456789abcdef0, ends: "2026-12-08T11:30:00Z"}'],
    )
    volume_gib: int = Field(
        default=100,
        alias="volumeGiB",
        ge=30,
        le=16384,
        description="a whole number of GiB, 30 to 16384",
        examples=["100"],
    )
    roll_out: bool = Field(
        default=False,
        description="true to let Karpenter replace drifted nodes, false otherwise",
        examples=["true"],
    )

    def machines(self, region: str) -> tuple[Machine, ...]:
        """The pool's known machine types.

        For a pool by family, those that the region offers, and on a spot pool those that it offers on spot.
        """
        catalogue = machine_catalogue("aws")
        if self.instance_types is not None:
            return tuple(catalogue[name] for name in self.instance_types if name in catalogue)
        selected = select_machines(self.families or (), self.sizes or (), catalogue, region)
        return tuple(
            machine for machine in selected if machine.on_spot or self.capacity is not CapacityType.SPOT
        )

    def as_pool(self, region: str) -> Pool:
        """The pool for the rules in `scheduling`."""
        return self.pool_of(self.machines(region), self.reservation)
