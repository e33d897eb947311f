"""All machines of a cloud, by name."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from scheduling.machines.machine import Machine
from scheduling.machines.tables import aws_table, local_table


@cache
def machine_catalogue(cloud: str) -> Mapping[str, Machine]:
    """All machines known on a cloud (`aws`, `local`), by name."""
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


_MACHINES: Final[Mapping[str, Callable[[], Iterable[Machine]]]] = {"aws": _aws, "local": _local}
