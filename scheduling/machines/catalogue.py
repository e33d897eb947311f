"""All machines of a cloud, by name."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from holdfast.scheduling.labels import ON_DEMAND, SPOT
from holdfast.scheduling.machines.machine import Machine
from holdfast.scheduling.machines.tables import aws_table, azure_table, gcp_table, local_table

_MIB_IN_GIB: Final = 1024


@cache
def machine_catalogue(cloud: str) -> Mapping[str, Machine]:
    """All machines known on a cloud (`aws`, `azure`, `gcp`, `local`), by name."""
    return MappingProxyType({machine.name: machine for machine in _MACHINES[cloud]()})


def _aws() -> Iterator[Machine]:
    rows = aws_table()["machines"]
    # A machine without a list price stands among the dearest: a simulated market, where prices do nothing but put
    # machines in order, must not take it for a bargain.
    dearest = max(price / vcpus for _, _, vcpus, *_, price, _ in rows if price is not None)
    for name, arch, vcpus, memory_mib, gpus, accelerator, efa_interfaces, on_spot, price, _ in rows:
        yield Machine(
            name=name,
            vcpus=vcpus,
            memory_mib=memory_mib,
            gpus=gpus,
            hourly_price=round(dearest * vcpus, 6) if price is None else price,
            arch=arch,
            accelerator=accelerator,
            efa_interfaces=efa_interfaces,
            on_spot=on_spot,
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
    dearest = max(price / gpus for _, _, _, _, gpus, *_, price in rows if price is not None)
    for name, arch, vcpus, gib, gpus, accelerator, local_ssds, sold, price in rows:
        yield Machine(
            name=name,
            vcpus=vcpus,
            memory_mib=int(gib * _MIB_IN_GIB),
            gpus=gpus,
            hourly_price=round(dearest * gpus, 6) if price is None else price,
            arch=arch,
            accelerator=accelerator,
            local_ssds=local_ssds,
            on_spot=SPOT in sold,
            on_demand=ON_DEMAND in sold,
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
