"""The rules of machine types on GCP: they exist, they take the GPUs, they can be bought as the pool buys them."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import attachable_to, can_be_placed_compactly, machine_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.gcp.config.pool import GcpAccelerator, GcpPool
    from holdfast.scheduling.machines import Machine


def machine_problems(pool: GcpPool, at: str) -> Iterator[Problem]:
    """Everything that is wrong with a pool's machine."""
    field = f"{at}.machineType"
    wrong = list(named_machine(pool.machine_type, field))
    yield from wrong
    if wrong:
        return
    machine = machine_catalogue("gcp")[pool.machine_type]
    if pool.accelerator is not None:
        yield from _attached(pool.accelerator, machine, f"{at}.accelerator")
    if pool.compact_placement and not can_be_placed_compactly(machine):
        yield Problem(
            field=f"{at}.compactPlacement",
            value=f"true for {machine.name}",
            allowed="true for machines that Compute Engine places close together, and this family it does not",
            fix="Leave it out, or write another machineType, such as c2-standard-8.",
        )
    yield from _sold(pool.capacity, machine, field)
    yield from _architecture(machine, field)


def named_machine(name: str, field: str) -> Iterator[Problem]:
    """A machine type that there is not."""
    known = machine_catalogue("gcp")
    if name not in known:
        close = get_close_matches(name, known, n=1)
        yield Problem(
            field=field,
            value=shown(name),
            allowed=f"one of the {len(known)} machine types that are known",
            fix=f'Write "{close[0]}".'
            if close
            else "Write one that `gcloud compute machine-types list` shows.",
        )


def no_gpus(name: str, field: str) -> Iterator[Problem]:
    """A machine with GPUs where these would only cost."""
    machine = machine_catalogue("gcp").get(name)
    if machine is not None and machine.gpus:
        yield Problem(
            field=field,
            value=f"{shown(name)}, which has {machine.gpus} GPUs",
            allowed="a machine without GPUs: GKE taints those of GPU machines only where others are there before",
            fix="Write, for example, e2-standard-4.",
        )


def _attached(accelerator: GcpAccelerator, machine: Machine, at: str) -> Iterator[Problem]:
    if machine.gpus:
        yield Problem(
            field=at,
            value=f"{accelerator.count} × {accelerator.type} beside the {machine.gpus} × {machine.accelerator} of "
            f"{machine.name}",
            allowed="nothing: the machine brings its GPUs",
            fix="Leave it out.",
        )
        return
    taken = attachable_to(machine)
    if not taken:
        yield Problem(
            field=at,
            value=f"GPUs for {machine.name}",
            allowed="GPUs for machines of the n1 series, which alone take them",
            fix="Write a machineType such as n1-standard-8, or one that brings its GPUs, such as g2-standard-8.",
        )
    elif accelerator.type not in taken:
        close = get_close_matches(accelerator.type, taken, n=1)
        yield Problem(
            field=f"{at}.type",
            value=shown(accelerator.type),
            allowed=f"what {machine.name} takes: {', '.join(sorted(taken))}",
            fix=f'Write "{close[0]}".' if close else "Write one of them.",
        )
    elif accelerator.count not in taken[accelerator.type]:
        counts = taken[accelerator.type]
        yield Problem(
            field=f"{at}.count",
            value=str(accelerator.count),
            allowed=f"as many of this kind as {machine.name} takes: {' or '.join(map(str, counts))}",
            fix=f"Write `count: {counts[0]}`; a machine of fewer vCPUs may take fewer.",
        )


def _sold(capacity: CapacityType, machine: Machine, field: str) -> Iterator[Problem]:
    on_spot = capacity is CapacityType.SPOT
    if not (machine.on_spot if on_spot else machine.on_demand):
        yield Problem(
            field=field,
            value=f"{shown(machine.name)} {'on spot' if on_spot else 'on demand'}",
            allowed=f"a machine that Compute Engine sells so, and this one only {'on demand' if on_spot else 'on spot'}"
            if machine.on_spot or machine.on_demand
            else "a machine that Compute Engine sells so, and this one only by reservation",
            fix="Write another machineType, or the other capacity.",
        )


def _architecture(machine: Machine, field: str) -> Iterator[Problem]:
    if machine.arch != "amd64":
        yield Problem(
            field=field,
            value=f"{shown(machine.name)}, a machine of {machine.arch}",
            allowed="machines of amd64: GKE taints the nodes of others with kubernetes.io/arch, and no job's pods "
            "tolerate that of their own accord",
            fix="Write, for example, n2-standard-4.",
        )
