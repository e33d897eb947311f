"""The rules of the machines that AKS's services and the operators run on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.infra.azure.config.locations import zone_problems
from holdfast.infra.azure.config.machine_rules import named_machine
from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.machines import machine_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.azure.config.cluster import AzureSystemNodes
    from holdfast.scheduling.machines import Machine

#: What AKS wants of a machine of a system pool.
_FEWEST_VCPUS: Final = 4
_LEAST_MIB: Final = 4096

_EXAMPLE: Final = "Write, for example, Standard_D4ds_v5."


def system_node_problems(nodes: AzureSystemNodes, location: str | None, at: str) -> Iterator[Problem]:
    """Everything that is wrong with the system nodes; `location` is None where it is not known."""
    field = f"{at}.vmSize"
    wrong = list(named_machine(nodes.vm_size, location, field))
    yield from wrong
    if not wrong:
        yield from _unfit(machine_catalogue("azure")[nodes.vm_size], field)
    yield from zone_problems(nodes.zones, location, f"{at}.zones")


def _unfit(machine: Machine, field: str) -> Iterator[Problem]:
    if machine.gpus:
        yield Problem(
            field=field,
            value=f"{shown(machine.name)}, which has {machine.gpus} GPUs",
            allowed="a machine without GPUs, since only AKS's services and operators run here",
            fix=_EXAMPLE,
        )
    elif machine.vcpus < _FEWEST_VCPUS or machine.memory_mib < _LEAST_MIB:
        yield Problem(
            field=field,
            value=f"{shown(machine.name)}, which has {machine.vcpus} vCPUs and {machine.memory_mib} MiB",
            allowed=f"a machine of {_FEWEST_VCPUS} vCPUs and {_LEAST_MIB} MiB or more, as AKS wants for a system pool",
            fix=_EXAMPLE,
        )
