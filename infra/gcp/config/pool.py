"""The configuration of a pool on GCP: a GKE node pool of one machine type."""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Literal, TypeAlias

from pydantic import Field

from holdfast.infra.config.base import Section
from holdfast.infra.config.fields import NAME_ALLOWED, DnsLabel
from holdfast.infra.config.stack import PoolSection
from holdfast.infra.gcp.config.fields import MACHINE_ALLOWED, ZONE_ALLOWED, MachineType, Zone
from holdfast.scheduling.machines import Machine, machine_catalogue, with_attached
from holdfast.scheduling.pools import Pool

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


class GcpPool(PoolSection):
    """Machines of one type and one capacity type."""

    fixes: ClassVar[Mapping[str, str]] = {
        **PoolSection.fixes,
        "instanceType": "Write machineType.",
        "instanceTypes": _ONE_MACHINE_TYPE,
        "machineTypes": _ONE_MACHINE_TYPE,
        "families": _ONE_MACHINE_TYPE,
        "sizes": _ONE_MACHINE_TYPE,
        "spotMaxPrice": _NO_PRICE_CAP,
        "spot_max_price": _NO_PRICE_CAP,
        "maxPrice": _NO_PRICE_CAP,
        "taint": _TAINTS_ARE_KNOWN,
        "taints": _TAINTS_ARE_KNOWN,
        "minNodes": "Leave it out: a pool scales down to zero nodes.",
        "initialNodeCount": "Leave it out: a pool starts with zero nodes.",
        "placementGroup": "Write compactPlacement.",
        "diskSizeGb": "Write diskGiB.",
        "volumeGiB": "Write diskGiB.",
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
        default=None,
        description="0, 30 or 120 seconds, on a spot pool",
        examples=["30"],
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
        return Pool(
            name=self.name,
            capacity=self.capacity,
            has_gpus=machine is not None and machine.gpus > 0,
            max_nodes=self.max_nodes,
            is_default=self.default,
        )
