"""The rules of the machines that operators run on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.infra.aws.config.machine_rules import named_machines
from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.machines import machine_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.scheduling.machines import Machine

#: What the operators, Karpenter (1 GiB) and EKS's own agents ask for on one of two nodes, and some room.
_FEWEST_VCPUS: Final = 2
_LEAST_MIB: Final = 4096


def system_machine_problems(types: Sequence[str], region: str | None, at: str) -> Iterator[Problem]:
    """Everything that is wrong with the instance types of the system nodes; `region` is None where it is not known."""
    if region is not None:
        yield from named_machines(types, region, at)
    catalogue = machine_catalogue("aws")
    machines = {index: catalogue[name] for index, name in enumerate(types) if name in catalogue}
    for index, machine in machines.items():
        yield from _unfit(machine, f"{at}[{index}]")
    architectures = {machine.arch for machine in machines.values()}
    if len(architectures) > 1:
        yield Problem(
            field=at,
            value=f"machines of {' and '.join(sorted(architectures))}",
            allowed="machines of one architecture, because a node group starts all of them from one image",
            fix="Leave out those of the one or the other.",
        )


def _unfit(machine: Machine, field: str) -> Iterator[Problem]:
    if machine.gpus:
        yield Problem(
            field=field,
            value=f"{shown(machine.name)}, which has {machine.gpus} GPUs",
            allowed="machines without GPUs, since only operators run here",
            fix="Write, for example, m7i.large.",
        )
    if machine.vcpus < _FEWEST_VCPUS or machine.memory_mib < _LEAST_MIB:
        yield Problem(
            field=field,
            value=f"{shown(machine.name)}, which has {machine.vcpus} vCPUs and {machine.memory_mib} MiB",
            allowed=f"machines of {_FEWEST_VCPUS} vCPUs and {_LEAST_MIB} MiB or more: two of them hold all operators",
            fix="Write, for example, m7i.large.",
        )
