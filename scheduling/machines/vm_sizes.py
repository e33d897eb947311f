"""Azure's VM sizes by family and vCPUs, for pools that do not list them one by one."""

import re
from collections.abc import Collection
from typing import Final

from holdfast.scheduling.machines.catalogue import machine_catalogue
from holdfast.scheduling.machines.machine import Machine
from holdfast.scheduling.machines.market import is_sold_in

# Standard_NC24ads_A100_v4: the vCPUs stand between the capitals of a family and what it adds.
_SIZE: Final = re.compile(r"Standard_(?P<capitals>[A-Z]+)\d+(?P<rest>\w*)", re.ASCII)
_FAMILY: Final = re.compile(r"(?P<capitals>[A-Z]+)(?P<rest>\w*)", re.ASCII)


def family_of(vm_size: str) -> str | None:
    """The family of a VM size (`Standard_D4ds_v5` → `Dds_v5`), as Azure names its series; None where it has none."""
    found = _SIZE.fullmatch(vm_size)
    return f"{found['capitals']}{found['rest']}" if found else None


def select_vm_sizes(families: Collection[str], vcpus: Collection[int], location: str) -> tuple[Machine, ...]:
    """The machines of these families (`Dds_v5`) with so many vCPUs that a location sells.

    In the order of the families, then of the vCPUs: the same configuration gives the same pool. A family need not have
    every size.
    """
    catalogue = machine_catalogue("azure")
    names = dict.fromkeys(_vm_size(family, count) for family in families for count in vcpus)
    return tuple(catalogue[name] for name in names if name in catalogue and is_sold_in(name, location))


def _vm_size(family: str, vcpus: int) -> str:
    found = _FAMILY.fullmatch(family)
    return f"Standard_{found['capitals']}{vcpus}{found['rest']}" if found else family
