"""The machine types of each cloud, read from the tables beside this module."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, TypedDict, cast

from pulumi_holdfast.ladder.labels import ON_DEMAND, SPOT

#: As Kubernetes spells them.
Architecture: TypeAlias = Literal["amd64", "arm64"]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """An instance type. Memory in MiB, on-demand price in USD an hour.

    Without a list price (`has_list_price`) `hourly_price` is a high one: a simulated market must not prefer the machine.
    `accelerator` is the kind of its GPUs as its cloud spells it (`a100` on AWS and Azure, `nvidia-tesla-a100` on GCP), None where it
    has none; `arch` the instruction set of its processors; `efa_interfaces` how many Elastic Fabric Adapters it can have;
    `local_ssds` how many local disks it brings that Compute Engine attaches by itself; `on_spot` and `on_demand` whether it is ever sold that way.
    `gpu_memory_mib` is the memory of one GPU; `local_nvme_gb` the size of its local NVMe disks, `max_pods` the pods that get
    addresses of its network interfaces, `processor` the manufacturer of its CPUs and `hypervisor` the virtualization, all as
    EC2 describes them; None where that is not known.
    """

    name: str
    vcpus: int
    memory_mib: int
    gpus: int
    hourly_price: float
    arch: Architecture = "amd64"
    accelerator: str | None = None
    efa_interfaces: int = 0
    local_ssds: int = 0
    on_spot: bool = True
    on_demand: bool = True
    gpu_memory_mib: int | None = None
    local_nvme_gb: int | None = None
    max_pods: int | None = None
    processor: str | None = None
    hypervisor: str | None = None
    has_list_price: bool = True

    @property
    def list_price(self) -> float | None:
        """The published on-demand price in USD an hour; None if the table has none."""
        return self.hourly_price if self.has_list_price else None


# Name, architecture, vCPUs, memory in MiB, GPUs, accelerator, EFA interfaces, spot, memory of a GPU in MiB, local disks in GB,
# pods, manufacturer of its processors, hypervisor, price, letters of regions.
AwsRow: TypeAlias = tuple[
    str, Architecture, int, int, int, str | None, int, bool, int, int, int, str, str, float | None, str
]


class AwsTable(TypedDict):
    """`aws.json`, which is generated: one row for a machine, one letter for a region."""

    columns: Sequence[str]
    regions: Mapping[str, str]
    zones: Mapping[str, str]
    machines: Sequence[AwsRow]


# Name, architecture, vCPUs, memory in MiB, GPUs, accelerator, price, characters of regions.
AzureRow: TypeAlias = tuple[str, Architecture, int, int, int, str | None, float, str]


class AzureTable(TypedDict):
    """`azure.json`, which is generated: one row for a machine, one character for a region and for each of its zones."""

    columns: Sequence[str]
    regions: Mapping[str, str]
    zones: Mapping[str, str]
    machines: Sequence[AzureRow]


# Name, architecture, USD an hour for a vCPU and for a GiB, memory in GiB by the number of vCPUs.
GcpSeries: TypeAlias = tuple[str, Architecture, float, float, Mapping[str, float]]

# Name, architecture, vCPUs, memory in GiB, GPUs, accelerator, local SSDs, how it is sold, price.
GcpAcceleratedRow: TypeAlias = tuple[
    str, Architecture, int, float, int, str, int, Sequence[str], float | None
]

# The disk its machines start from, and whether they can be placed close to each other.
GcpFamily: TypeAlias = tuple[str, bool]

# USD an hour for one, and the most vCPUs that a machine may have beside so many of them.
GcpAttachable: TypeAlias = tuple[float, Mapping[str, int]]


class GcpTable(TypedDict):
    """`gcp.json`, which is written by hand: one row for a series of machines, and for each that brings GPUs.

    A machine of a series is named after its vCPUs (`n2-standard-8`), a family by the first part of its machines' names.
    A region's zones are letters; `zones` are those that have machines with GPUs, by the series and the region.
    """

    regions: Mapping[str, str]
    zones: Mapping[str, Mapping[str, str]]
    families: Mapping[str, GcpFamily]
    series: Sequence[GcpSeries]
    accelerated: Sequence[GcpAcceleratedRow]
    attachable: Mapping[str, GcpAttachable]


class LocalRow(TypedDict):
    """An entry of `local.json`, which is written by hand."""

    name: str
    vcpus: int
    memoryMiB: int
    gpus: int
    accelerator: str | None
    hourlyPrice: float


@cache
def aws_table() -> AwsTable:
    """EC2 instance types, with the regions that sell them."""
    return cast("AwsTable", _read("aws.json"))


@cache
def azure_table() -> AzureTable:
    """Azure VM sizes, with the regions that sell them."""
    return cast("AzureTable", _read("azure.json"))


@cache
def gcp_table() -> GcpTable:
    """Machine types of Compute Engine, and the zones of its regions."""
    return cast("GcpTable", _read("gcp.json"))


@cache
def local_table() -> Sequence[LocalRow]:
    """The machine types of the simulated cloud."""
    return cast("Sequence[LocalRow]", _read("local.json"))


def _read(name: str) -> object:
    return json.loads(files("pulumi_holdfast.ladder.machines").joinpath(name).read_text(encoding="utf-8"))


_MIB_IN_GIB: Final = 1024


@cache
def machine_catalogue(cloud: str) -> Mapping[str, Machine]:
    """All known machines of a cloud (`aws`, `azure`, `gcp`, `local`), by name."""
    return MappingProxyType({machine.name: machine for machine in _MACHINES[cloud]()})


def _aws() -> Iterator[Machine]:
    rows = aws_table()["machines"]
    # A machine without a list price gets the highest price per vCPU: the simulated market orders machines by price, and must
    # not prefer it.
    highest = max(price / vcpus for _, _, vcpus, *_, price, _ in rows if price is not None)
    for row in rows:
        name, arch, vcpus, memory_mib, gpus, accelerator, efa_interfaces, on_spot = row[:8]
        gpu_memory_mib, local_nvme_gb, max_pods, processor, hypervisor, price, _ = row[8:]
        yield Machine(
            name=name,
            vcpus=vcpus,
            memory_mib=memory_mib,
            gpus=gpus,
            hourly_price=round(highest * vcpus, 6) if price is None else price,
            arch=arch,
            accelerator=accelerator,
            efa_interfaces=efa_interfaces,
            on_spot=on_spot,
            gpu_memory_mib=gpu_memory_mib or None,
            local_nvme_gb=local_nvme_gb,
            max_pods=max_pods or None,
            processor=processor,
            hypervisor=hypervisor,
            has_list_price=price is not None,
        )


def _azure() -> Iterator[Machine]:
    for name, arch, vcpus, memory_mib, gpus, accelerator, price, _ in azure_table()["machines"]:
        yield Machine(
            name=name,
            vcpus=vcpus,
            memory_mib=memory_mib,
            gpus=gpus,
            hourly_price=price,
            arch=arch,
            accelerator=accelerator,
        )


def _gcp() -> Iterator[Machine]:
    for series, arch, vcpu_price, gib_price, gib_by_vcpus in gcp_table()["series"]:
        for vcpus, gib in gib_by_vcpus.items():
            yield Machine(
                name=f"{series}-{vcpus}",
                vcpus=int(vcpus),
                memory_mib=int(gib * _MIB_IN_GIB),
                gpus=0,
                hourly_price=round(vcpu_price * int(vcpus) + gib_price * gib, 6),
                arch=arch,
            )
    rows = gcp_table()["accelerated"]
    highest = max(price / gpus for _, _, _, _, gpus, *_, price in rows if price is not None)
    for name, arch, vcpus, gib, gpus, accelerator, local_ssds, sold, price in rows:
        yield Machine(
            name=name,
            vcpus=vcpus,
            memory_mib=int(gib * _MIB_IN_GIB),
            gpus=gpus,
            hourly_price=round(highest * gpus, 6) if price is None else price,
            arch=arch,
            accelerator=accelerator,
            local_ssds=local_ssds,
            on_spot=SPOT in sold,
            on_demand=ON_DEMAND in sold,
            has_list_price=price is not None,
        )


def _local() -> Iterator[Machine]:
    for entry in local_table():
        yield Machine(
            name=entry["name"],
            vcpus=entry["vcpus"],
            memory_mib=entry["memoryMiB"],
            gpus=entry["gpus"],
            accelerator=entry["accelerator"],
            hourly_price=entry["hourlyPrice"],
        )


_MACHINES: Final[Mapping[str, Callable[[], Iterable[Machine]]]] = {
    "aws": _aws,
    "azure": _azure,
    "gcp": _gcp,
    "local": _local,
}


def boot_disk_of(machine: Machine) -> str:
    """The type of boot disk of a GCP machine.

    Newer families require Hyperdisk, and older ones do not support it.
    """
    boot_disk, _ = gcp_table()["families"][_family(machine)]
    return boot_disk


def can_be_placed_compactly(machine: Machine) -> bool:
    """Whether Compute Engine supports compact placement of machines of this type."""
    _, compact = gcp_table()["families"][_family(machine)]
    return compact


def attaches_only_hyperdisk(machine: Machine) -> bool:
    """Whether Compute Engine attaches no Persistent Disk to machines of this type; A3 machines take both, but for the largest."""
    return machine.name.startswith("a3-ultragpu") or (
        boot_disk_of(machine).startswith("hyperdisk") and _family(machine) != "a3"
    )


def can_be_confidential(machine: Machine) -> bool:
    """Whether machines of this type may encrypt their memory, as Confidential VMs; true for a family that may."""
    return _family(machine) not in _NOT_CONFIDENTIAL


def _family(machine: Machine) -> str:
    return machine.name.partition("-")[0]


#: Families without a processor for Confidential VMs.
_NOT_CONFIDENTIAL: Final = frozenset({"a2", "c2", "c4a", "e2", "g2", "n1", "n2", "n4", "n4a", "t2a", "t2d"})
_FAMILY: Final = "n1-"


def attachable_to(machine: Machine) -> Mapping[str, tuple[int, ...]]:
    """How many GPUs of each kind can be attached to a GCP machine; empty if none can be.

    Fewer GPUs allow only fewer vCPUs: a larger machine takes more GPUs or none.
    """
    if not machine.name.startswith(_FAMILY):
        return {}
    counts = {
        kind: tuple(int(count) for count, most_vcpus in limits.items() if machine.vcpus <= most_vcpus)
        for kind, (_, limits) in gcp_table()["attachable"].items()
    }
    return {kind: fitting for kind, fitting in counts.items() if fitting}


def with_attached(machine: Machine, kind: str, count: int) -> Machine:
    """The machine with GPUs attached. Raises ValueError if Compute Engine would not attach them."""
    fitting = attachable_to(machine)
    if count not in fitting.get(kind, ()):
        takes = ", ".join(
            f"{' or '.join(map(str, counts))} {known}" for known, counts in sorted(fitting.items())
        )
        raise ValueError(f"{machine.name} cannot have {count} {kind} attached; it takes {takes or 'none'}")
    price, _ = gcp_table()["attachable"][kind]
    return replace(
        machine, gpus=count, accelerator=kind, hourly_price=round(machine.hourly_price + count * price, 6)
    )
