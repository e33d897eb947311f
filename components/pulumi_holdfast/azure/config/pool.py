"""The configuration of a pool on Azure: a NodePool of node auto-provisioning, or a scale set."""

from collections.abc import Mapping
from typing import ClassVar, Final

from pydantic import Field

from pulumi_holdfast.azure.config.fields import (
    RESERVATION_GROUP_ALLOWED,
    VM_SIZE_ALLOWED,
    DiskGib,
    ListedZones,
    ReservationGroupId,
    VmSize,
)
from pulumi_holdfast.config.reservation import ReservationSection
from pulumi_holdfast.config.stack import PRICE_CAPS, PoolSection
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue, select_vm_sizes
from pulumi_holdfast.ladder.pools import Pool

#: AKS's value for "up to the on-demand price".
NO_CAP: Final = -1.0

_NO_CAP_UNDER_NAP: Final = (
    "Leave it out: AKS's node auto-provisioning requests every spot machine with −1, up to the on-demand price, and has "
    "no field for a cap. For a cap, write `scaling: fixed` under cluster, where spot pools have spotMaxPrice; without "
    "one, a tier's procurementTimeout moves jobs if spot has no capacity."
)
_ONE_SIZE: Final = (
    "Write vmSize, one for each pool: a scale set has one size. With `scaling: nap` under cluster, a pool can have "
    "several."
)
#: An example of a capacity reservation group.
_GROUP: Final = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/capacity/providers/Microsoft.Compute/"
    "capacityReservationGroups/h100"
)
#: The fix where node auto-provisioning is asked for reserved machines.
RESERVED_NEEDS_FIXED: Final = "Write `scaling: fixed` under cluster, where a pool names its capacity reservation group; or another capacity."
_TAINTS_ARE_KNOWN: Final = "Leave it out: a pool's taints follow from its capacity and its GPUs."


class AzureReservation(ReservationSection):
    """A group of capacity reservations; one of them is of the pool's VM size, in one of its zones."""

    fixes: ClassVar[Mapping[str, str]] = {
        **ReservationSection.fixes,
        "id": "Write group, the id of the reservation's group.",
        "capacityReservationGroupID": "Write group.",
        "crgId": "Write group.",
    }

    group: ReservationGroupId = Field(description=RESERVATION_GROUP_ALLOWED, examples=[_GROUP])


class AzurePoolSection(PoolSection):
    """The fields of both kinds of pool."""

    fixes: ClassVar[Mapping[str, str]] = {
        **PoolSection.fixes,
        "priority": "Write capacity: spot, or capacity: on-demand.",
        **dict.fromkeys(("taint", "taints", "nodeTaints"), _TAINTS_ARE_KNOWN),
        **dict.fromkeys(("minNodes", "minCount"), "Leave it out: a pool scales down to zero nodes."),
        "maxCount": "Write maxNodes.",
        "evictionPolicy": "Leave it out: AKS deletes an evicted spot machine; a deallocated one would still "
        "count against the quota.",
        "volumeGiB": "Write diskGiB.",
        "osDiskSizeGB": "Write diskGiB.",
        "efa": "Leave it out: only AWS has Elastic Fabric Adapters.",
    }

    zones: ListedZones = ()
    disk_gib: DiskGib = 128


class NapPool(AzurePoolSection):
    """A pool of node auto-provisioning: nodes of one capacity type, of any of several VM sizes."""

    fixes: ClassVar[Mapping[str, str]] = {
        **AzurePoolSection.fixes,
        "vmSize": "Write vmSizes, a list; or `scaling: fixed` under cluster, for a scale set of one size.",
        "instanceType": "Write vmSizes, a list.",
        "instanceTypes": "Write vmSizes.",
        "machineType": "Write vmSizes, a list.",
        "sizes": "Write vcpus, together with families.",
        "reservation": RESERVED_NEEDS_FIXED,
        **dict.fromkeys(PRICE_CAPS, _NO_CAP_UNDER_NAP),
    }

    vm_sizes: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="a list of one VM size or more",
        examples=["[Standard_D4ds_v5, Standard_D4ads_v5]"],
    )
    families: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="a list of one family or more, together with vcpus",
        examples=["[Dds_v5, Dads_v5]"],
    )
    vcpus: tuple[int, ...] | None = Field(
        default=None,
        min_length=1,
        description="a list of one number of vCPUs or more, together with families",
        examples=["[4, 8]"],
    )
    roll_out: bool = Field(
        default=False,
        description="true to let Karpenter replace drifted nodes, false otherwise",
        examples=["true"],
    )

    def machines(self, location: str) -> tuple[Machine, ...]:
        """The pool's known VM sizes: for a pool by family, those that the location offers."""
        catalogue = machine_catalogue("azure")
        if self.vm_sizes is not None:
            return tuple(catalogue[name] for name in self.vm_sizes if name in catalogue)
        return tuple(select_vm_sizes(self.families or (), self.vcpus or (), location))

    def as_pool(self, location: str) -> Pool:
        """The pool for the rules in `scheduling`."""
        return self.pool_of(self.machines(location))


class FixedPool(AzurePoolSection):
    """Machines of one capacity type and one VM size in a scale set, which AKS's cluster autoscaler keeps."""

    fixes: ClassVar[Mapping[str, str]] = {
        **AzurePoolSection.fixes,
        "instanceType": "Write vmSize.",
        "machineType": "Write vmSize.",
        **dict.fromkeys(("instanceTypes", "vmSizes", "families", "vcpus"), _ONE_SIZE),
        "spot_max_price": "Write spotMaxPrice.",
        "maxPrice": "Write spotMaxPrice.",
        "rollOut": "Leave it out: AKS upgrades the nodes of a scale set, in the maintenance window.",
    }

    vm_size: VmSize = Field(description=VM_SIZE_ALLOWED, examples=["Standard_D4ds_v5"])
    spot_max_price: float | None = Field(
        default=None,
        description="USD an hour for a spot machine, above 0 and with up to five decimals, or -1 for up to the "
        "on-demand price",
        examples=["1.5"],
    )

    reservation: AzureReservation | None = Field(
        default=None,
        description="a mapping of group, begins and ends, on a pool with capacity: reserved",
        examples=[f"{{group: {_GROUP}}}"],
    )

    @property
    def price_cap(self) -> float:
        """The most that a spot machine may cost, USD an hour; NO_CAP for up to the on-demand price."""
        return NO_CAP if self.spot_max_price is None else self.spot_max_price

    def machine(self) -> Machine | None:
        """The pool's machine; None where it is not known."""
        return machine_catalogue("azure").get(self.vm_size)

    def as_pool(self) -> Pool:
        """The pool for the rules in `scheduling`."""
        machine = self.machine()
        return self.pool_of(() if machine is None else (machine,), self.reservation)
