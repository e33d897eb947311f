"""The configuration of a pool on GCP: a GKE node pool of one machine type."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar, Literal, TypeAlias

from pydantic import Field

from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.fields import NAME_ALLOWED, DnsLabel, Duration
from pulumi_holdfast.config.reservation import ReservationSection
from pulumi_holdfast.config.stack import PRICE_CAPS, PoolSection
from pulumi_holdfast.gcp.config.fields import (
    MACHINE_ALLOWED,
    RESERVATION_ALLOWED,
    ZONE_ALLOWED,
    MachineType,
    ReservationName,
    Zone,
)
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue, with_attached
from pulumi_holdfast.ladder.pools import Pool

_NO_PRICE_CAP = (
    "Leave it out: Compute Engine has no bids, so GKE has no field that holds a price cap. A Spot VM has a list price; "
    "a tier's procurementTimeout moves jobs if there is no capacity."
)
_ONE_MACHINE_TYPE = "Write machineType, one for each pool: a GKE node pool has one machine type."
_TAINTS_ARE_KNOWN = (
    "Leave it out: a pool's taints follow from its capacity and its GPUs, and GKE adds the one of GPUs."
)

#: Seconds until a preempted Spot VM stops.
ShutdownSeconds: TypeAlias = Literal[0, 30, 120]


class Upgrades(StrEnum):
    """How GKE replaces the nodes of a pool in an upgrade."""

    SURGE = "surge"
    BLUE_GREEN = "blue-green"


class GcpAccelerator(Section):
    """GPUs attached to a machine type without GPUs."""

    type: str = Field(description="a kind of GPU of Compute Engine", examples=["nvidia-tesla-t4"])
    count: int = Field(ge=1, le=8, description="a whole number of GPUs, 1 to 8", examples=["1"])


class GcpReservation(ReservationSection):
    """A specifically targeted reservation of Compute Engine, or one block of it."""

    fixes: ClassVar[Mapping[str, str]] = {
        **ReservationSection.fixes,
        "project": "Write name: projects/PROJECT/reservations/NAME.",
        "block": "Write name: projects/PROJECT/reservations/NAME/reservationBlocks/BLOCK.",
        "affinity": "Leave it out: a pool uses only the reservation that it names.",
    }

    name: ReservationName = Field(description=RESERVATION_ALLOWED, examples=["h100"])


_QUEUED: str = (
    "Leave it out: queued provisioning needs a ProvisioningRequest for each job, which Kueue makes, and jobs that Kueue "
    "manages follow no ladder. Without it, flexStart waits until machines are available."
)


class GcpFlexStart(Section):
    """Machines of the Dynamic Workload Scheduler: GKE waits for them, and keeps them for a limited time."""

    fixes: ClassVar[Mapping[str, str]] = {
        "queued": _QUEUED,
        "queuedProvisioning": _QUEUED,
        "maxRunDurationSeconds": "Write maxRunDuration, such as 7d as 168h.",
    }

    max_run_duration: Duration = Field(
        default=timedelta(days=7),
        description="how long a machine runs at most, 10m to 168h",
        examples=["168h"],
    )


class GcpPool(PoolSection):
    """Machines of one type and one capacity type."""

    fixes: ClassVar[Mapping[str, str]] = {
        **PoolSection.fixes,
        "instanceType": "Write machineType.",
        **dict.fromkeys(("instanceTypes", "machineTypes", "families", "sizes"), _ONE_MACHINE_TYPE),
        **dict.fromkeys(PRICE_CAPS, _NO_PRICE_CAP),
        **dict.fromkeys(("taint", "taints"), _TAINTS_ARE_KNOWN),
        "minNodes": "Leave it out: a pool scales down to zero nodes.",
        "initialNodeCount": "Leave it out: a pool starts with zero nodes.",
        "placementGroup": "Write compactPlacement.",
        "diskSizeGb": "Write diskGiB.",
        "volumeGiB": "Write diskGiB.",
        "queuedProvisioning": _QUEUED,
        "reservationAffinity": "Write reservation, with its name.",
        "efa": "Leave it out: only AWS has Elastic Fabric Adapters.",
    }

    machine_type: MachineType = Field(description=MACHINE_ALLOWED, examples=["a2-highgpu-8g"])
    accelerator: GcpAccelerator | None = Field(
        default=None,
        description="a mapping of type and count, for machines of the n1 series",
        examples=["{type: nvidia-tesla-t4, count: 1}"],
    )
    zones: tuple[Zone, ...] | None = Field(
        default=None,
        min_length=1,
        description=f"a list of one item or more, each {ZONE_ALLOWED}",
        examples=["[us-central1-a]"],
    )
    compact_placement: bool = Field(
        default=False,
        description="true to place the pool's machines close together in one zone, false otherwise",
        examples=["true"],
    )
    upgrades: Upgrades = Field(
        default=Upgrades.SURGE,
        description="surge, one node at a time without extra nodes, or blue-green, with a second set of nodes",
        examples=["surge"],
    )
    graceful_shutdown_seconds: ShutdownSeconds | None = Field(
        default=None, description="0, 30 or 120 seconds, on a spot pool", examples=["30"]
    )
    reservation: GcpReservation | None = Field(
        default=None,
        description="a mapping of name, begins and ends, on a pool with capacity: reserved",
        examples=['{name: h100, ends: "2026-12-08T11:30:00Z"}'],
    )
    flex_start: GcpFlexStart | None = Field(
        default=None,
        description="a mapping of maxRunDuration, on a pool with capacity: reserved",
        examples=["{maxRunDuration: 168h}"],
    )
    disk_gib: int = Field(
        default=100,
        alias="diskGiB",
        ge=30,
        le=65536,
        description="a whole number of GiB, 30 to 65536",
        examples=["100"],
    )
    compute_class: DnsLabel | None = Field(default=None, description=NAME_ALLOWED, examples=["any-a100"])

    @property
    def shutdown_seconds(self) -> ShutdownSeconds:
        """The graceful shutdown time of a preempted node, in seconds; 30 by default."""
        return 30 if self.graceful_shutdown_seconds is None else self.graceful_shutdown_seconds

    def machine(self) -> Machine | None:
        """The pool's machine, with the GPUs that are attached to it; None if it is unknown.

        Raises ValueError for GPUs that it does not support, which validation rejects.
        """
        machine = machine_catalogue("gcp").get(self.machine_type)
        if machine is None or self.accelerator is None:
            return machine
        return with_attached(machine, self.accelerator.type, self.accelerator.count)

    def as_pool(self) -> Pool:
        """The pool for the rules in `scheduling`."""
        machine = self.machine()
        return self.pool_of(() if machine is None else (machine,), self.reservation)
