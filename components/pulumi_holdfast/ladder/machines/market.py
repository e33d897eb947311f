"""Where machines are sold: regions and zones, and machines selected by family and size; and the fast networks between them.

Eight GPUs produce more data in each step than TCP transfers, so a job on several nodes mostly waits for its network. A
preview warns about every pool whose network a stack does not set up.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

from pulumi_holdfast.ladder.machines.catalogue import (
    Machine,
    aws_table,
    azure_table,
    gcp_table,
    machine_catalogue,
)

#: The zones of the simulated cloud.
LOCAL_ZONES: Final = ("local-a", "local-b", "local-c")


def regions(cloud: str) -> frozenset[str]:
    """The known regions of a cloud (`aws`, `azure`, `gcp`)."""
    return frozenset(_REGIONS[cloud]())


def regions_of(name: str) -> frozenset[str]:
    """The regions of AWS or Azure that sell a machine; none for an unknown type."""
    return _sold().get(name, frozenset())


def is_sold_in(name: str, region: str) -> bool:
    """Whether a region of AWS or Azure sells a machine."""
    return region in regions_of(name)


def zones_of(region: str) -> tuple[str, ...]:
    """The names of a region's zones, in order, as in the labels of their nodes; empty if unknown.

    The zones of AWS in China and GovCloud are unknown, and some locations of Azure have none. On AWS these are the names
    that most accounts see: the building behind `us-east-1a` differs between accounts, and newer accounts see fewer zones of
    an old region. Region names are unique across the clouds.
    """
    after_a_hyphen = gcp_table()["regions"].get(region) or azure_table()["zones"].get(region, "")
    return tuple(
        [f"{region}{zone}" for zone in aws_table()["zones"].get(region, "")]
        + [f"{region}-{zone}" for zone in after_a_hyphen]
    )


def zones_with(machine: str) -> frozenset[str] | None:
    """The zones of Google Cloud that have a machine with GPUs; None if the table does not have its zones."""
    series = gcp_table()["zones"].get(machine.rpartition("-")[0])
    if series is None:
        return None
    return frozenset(f"{region}-{zone}" for region, zones in series.items() for zone in zones)


@cache
def _sold() -> Mapping[str, frozenset[str]]:
    on_aws, on_azure = aws_table(), azure_table()
    sold = {name: _regions(on_aws["regions"], letters) for name, *_, letters in on_aws["machines"]}
    sold |= {name: _regions(on_azure["regions"], letters) for name, *_, letters in on_azure["machines"]}
    return MappingProxyType(sold)


def _regions(names: Mapping[str, str], letters: str) -> frozenset[str]:
    return frozenset(names[letter] for letter in letters)


_REGIONS: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "aws": lambda: aws_table()["regions"].values(),
    "azure": lambda: azure_table()["regions"].values(),
    "gcp": lambda: gcp_table()["regions"],
}


def select_machines(
    families: Collection[str], sizes: Collection[str], catalogue: Mapping[str, Machine], region: str | None
) -> tuple[Machine, ...]:
    """The machines of these families (`m7i`) in these sizes (`xlarge`) that a region of AWS sells; without one, that any sells.

    Ordered by family, then by size, so that the same configuration gives the same pool. A family may lack a size.
    """
    names = dict.fromkeys(f"{family}.{size}" for family in families for size in sizes)
    return tuple(
        catalogue[name]
        for name in names
        if name in catalogue and (region is None or is_sold_in(name, region))
    )


# Standard_NC24ads_A100_v4: the number of vCPUs is between the capitals of a family and its suffix.
_SIZE: Final = re.compile(r"Standard_(?P<capitals>[A-Z]+)\d+(?P<rest>\w*)", re.ASCII)
_FAMILY: Final = re.compile(r"(?P<capitals>[A-Z]+)(?P<rest>\w*)", re.ASCII)


def family_of(vm_size: str) -> str | None:
    """The family of a VM size as Azure names its series (`Standard_D4ds_v5` → `Dds_v5`); None if it has none."""
    found = _SIZE.fullmatch(vm_size)
    return f"{found['capitals']}{found['rest']}" if found else None


def select_vm_sizes(families: Collection[str], vcpus: Collection[int], location: str) -> tuple[Machine, ...]:
    """The machines of these families (`Dds_v5`) with these numbers of vCPUs that a location sells.

    Ordered by family, then by vCPUs, so that the same configuration gives the same pool. A family may lack a size.
    """
    catalogue = machine_catalogue("azure")
    names = dict.fromkeys(_vm_size(family, count) for family in families for count in vcpus)
    return tuple(catalogue[name] for name in names if name in catalogue and is_sold_in(name, location))


def _vm_size(family: str, vcpus: int) -> str:
    found = _FAMILY.fullmatch(family)
    return f"Standard_{found['capitals']}{vcpus}{found['rest']}" if found else family


#: Machine types of Google Cloud with network cards of their own for GPUs.
_GOOGLE: Final = {
    "a3-highgpu-8g": "GPUDirect-TCPX",
    "a3-megagpu-8g": "GPUDirect-TCPXO",
    "a3-ultragpu-8g": "GPUDirect RDMA",
    "a4-highgpu-8g": "GPUDirect RDMA",
    "a4x-highgpu-4g": "GPUDirect RDMA",
}

#: Sizes of Azure's ND series whose name has the letter of RDMA behind the number of vCPUs: ND96isr_H100_v5.
_INFINIBAND: Final = re.compile(r"Standard_ND\d+[a-z]*r[a-z]*_\w+", re.ASCII)

_NEEDS: Final = {
    "GPUDirect": "additional networks with jumbo frames, and Google's NCCL plugin on the nodes",
    "InfiniBand": "the feature AKSInfinibandSupport, NVIDIA's network operator and its devices in the pods",
}


def fast_network_of(machine: Machine) -> str | None:
    """The fast network that a machine has between machines of its type; None for TCP only."""
    if machine.efa_interfaces:
        return "Elastic Fabric Adapter"
    return _GOOGLE.get(machine.name) or ("InfiniBand" if _INFINIBAND.fullmatch(machine.name) else None)


def unused_network_warnings(
    pool: str, machines: Sequence[Machine], *, max_nodes: int, uses_adapters: bool = False
) -> Iterator[str]:
    """The warning about a pool of GPU machines whose fast network is not used, although a gang may span its nodes.

    `uses_adapters`: the pool has Elastic Fabric Adapters.
    """
    found = {machine.name: network for machine in machines if (network := fast_network_of(machine))}
    gpus = any(machine.gpus for machine in machines)
    if not found or not gpus or max_nodes < 2 or uses_adapters:
        return
    listed = ", ".join(f"{name} has {network}" for name, network in found.items())
    network = next(iter(found.values())).partition("-")[0].partition(" ")[0]
    fix = (
        "Write `efa: true` to use it."
        if network == "Elastic"
        else f"The stack does not set it up: it needs {_NEEDS[network]}. Run each job on one node, or expect its nodes to wait for "
        "their network."
    )
    yield f"pool {pool}: jobs on several nodes communicate by TCP only ({listed}). {fix}"
