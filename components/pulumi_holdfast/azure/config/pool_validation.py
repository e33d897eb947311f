"""Validates the pools, VM sizes and zones of an Azure stack."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.azure.config.fields import LOCATION, zones_here
from pulumi_holdfast.azure.config.pool import NO_CAP, RESERVED_NEEDS_FIXED
from pulumi_holdfast.azure.names import agent_pool_name
from pulumi_holdfast.config import machine_validation, validation
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.machine_validation import (
    machine_selection_problems,
    mixed_gpu_problems,
    nearest_name,
)
from pulumi_holdfast.config.reservation import reservation_problems
from pulumi_holdfast.config.validation import POOLS
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import family_of, is_sold_in, machine_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulumi_holdfast.azure.config.cluster import AzureSystemNodes
    from pulumi_holdfast.azure.config.pool import FixedPool, NapPool
    from pulumi_holdfast.ladder.machines import Machine


#: The number of decimals that AKS allows in a price cap.
_DECIMALS: Final = 5


def nap_pool_problems(pool: NapPool, location: str | None, at: str) -> Iterator[Problem]:
    """The problems of a pool of node auto-provisioning; `location` is None if it is unknown."""
    if pool.capacity is CapacityType.RESERVED:
        yield Problem(
            field=f"{at}.capacity",
            value="reserved with `scaling: nap`",
            allowed="spot or on-demand: Karpenter's provider for Azure does not know capacity reservations",
            fix=RESERVED_NEEDS_FIXED,
        )
    wrong = list(nap_machine_problems(pool, location, at))
    yield from wrong
    if not wrong and location is not None:
        yield from machine_validation.mixed_architecture_problems(pool.machines(location), at)
    yield from zone_problems(pool.zones, location, f"{at}.zones")


def fixed_pool_problems(pool: FixedPool, location: str | None, at: str) -> Iterator[Problem]:
    """Everything that is wrong with a scale set; `location` is None where it is not known."""
    yield from named_machine(pool.vm_size, location, f"{at}.vmSize")
    yield from _price_cap(pool, f"{at}.spotMaxPrice")
    yield from reservation_problems(
        pool.capacity, {"reservation": pool.reservation}, at, example="reservation: {group: ID}"
    )
    yield from zone_problems(pool.zones, location, f"{at}.zones")


def scale_set_names(names: Mapping[int, str]) -> Iterator[Problem]:
    """Pools whose scale sets would have the same name: AKS allows 12 characters and no hyphen."""
    first: dict[str, int] = {}
    for index, name in names.items():
        other = first.setdefault(agent_pool_name(name), index)
        if names[other] != name:
            yield Problem(
                field=f"{POOLS}[{index}].name",
                value=f"{format_value(name)}, whose scale set would be {agent_pool_name(name)}, as that of {names[other]}",
                allowed="names with different letters and digits: AKS allows no hyphen in the name of a node pool",
                fix=f"Rename one of the two, such as {format_value(f'{name}-2')}.",
            )


def _price_cap(pool: FixedPool, field: str) -> Iterator[Problem]:
    cap = pool.spot_max_price
    if cap is None:
        return
    if pool.capacity is not CapacityType.SPOT:
        yield Problem(
            field=field,
            value=f"{cap:g} on a pool that is {pool.capacity.value}",
            allowed="nothing: only spot machines have a variable price",
            fix="Leave it out.",
        )
    elif cap != NO_CAP and not (math.isfinite(cap) and cap > 0 and round(cap, _DECIMALS) == cap):
        yield Problem(
            field=field,
            value=f"{cap:g}",
            allowed=f"USD per hour, more than 0, with up to {_DECIMALS} decimals; or -1 for up to the on-demand price",
            fix=f"Write `spotMaxPrice: {round(cap, _DECIMALS):g}`."
            if math.isfinite(cap) and round(cap, _DECIMALS) > 0
            else "Leave it out for up to the on-demand price.",
        )


_AZURE: Final = machine_validation.CloudTerms(
    cloud="azure",
    what="VM size",
    setting=LOCATION,
    command="az vm list-skus --location {region} --resource-type virtualMachines --query [].name",
)


def nap_machine_problems(pool: NapPool, location: str | None, at: str) -> Iterator[Problem]:
    """The problems of a pool's selection of VM sizes with node auto-provisioning."""
    fields = {"vmSizes": pool.vm_sizes, "families": pool.families, "vcpus": pool.vcpus}
    wrong = list(
        machine_selection_problems(
            ("vmSizes", "[Standard_D4ds_v5, Standard_D4ads_v5]"),
            {"families": "[Dds_v5, Dads_v5]", "vcpus": "[4]"},
            frozenset(field for field, given in fields.items() if given is not None),
            at,
        )
    )
    yield from wrong
    if wrong:
        return
    if pool.vm_sizes is not None:
        yield from _named(pool.vm_sizes, location, f"{at}.vmSizes")
    elif location is not None:
        yield from _families_and_vcpus(pool, location, at)


def named_machine(name: str, location: str | None, field: str) -> Iterator[Problem]:
    """A VM size that does not exist, or that the location does not offer."""
    for problem in _named((name,), location, field):
        yield Problem(field=field, value=problem.value, allowed=problem.allowed, fix=problem.fix)


def _named(names: Sequence[str], location: str | None, at: str) -> Iterator[Problem]:
    # Azure accepts a name without its prefix and in any case; a node label and a NodePool do not.
    if location is None:
        yield from machine_validation.known_machine_problems(names, _AZURE, at)
    else:
        yield from machine_validation.regional_machine_problems(names, location, _AZURE, at)


def _families_and_vcpus(pool: NapPool, location: str, at: str) -> Iterator[Problem]:
    families, numbers = pool.families or (), pool.vcpus or ()
    there = _numbers_by_family(location)
    how = " on spot" if pool.capacity is CapacityType.SPOT else ""
    unknown = [name for name in families if name not in there]
    for name in unknown:
        close = nearest_name(name, there)
        yield Problem(
            field=f"{at}.families[{families.index(name)}]",
            value=f"{format_value(name)}, a family without a VM size{how} in {location}",
            allowed="a family: the name of a VM size without its number, such as Dds_v5 for Standard_D4ds_v5",
            fix=f'Write "{close}".' if close else "Remove it.",
        )
    if unknown:
        # Another family may have these numbers of vCPUs.
        return
    known = {number for name in families for number in there[name]}
    for index, number in enumerate(numbers):
        if number not in known:
            yield Problem(
                field=f"{at}.vcpus[{index}]",
                value=f"{number}, the vCPUs of no VM size of {', '.join(families)}{how}",
                allowed=f"a number of vCPUs of these families: {', '.join(map(str, sorted(known)))}",
                fix="Write one of them, or remove it.",
            )
    for index, name in enumerate(families):
        if known & set(numbers) and there[name].isdisjoint(numbers):
            yield Problem(
                field=f"{at}.families[{index}]",
                value=f"{format_value(name)}, a family without a VM size of {' or '.join(map(str, numbers))} vCPUs{how}",
                allowed=f"a family with one of the pool's vcpus; this one has {', '.join(map(str, sorted(there[name])))}",
                fix="Remove it, or add one of its numbers to vcpus.",
            )
    yield from mixed_gpu_problems(pool.machines(location), f"{at}.families")


def _numbers_by_family(location: str) -> Mapping[str, frozenset[int]]:
    """The vCPUs of the VM sizes of each family that a location offers."""
    found: dict[str, frozenset[int]] = {}
    for name, machine in machine_catalogue("azure").items():
        family = family_of(name)
        if family is not None and is_sold_in(name, location):
            found[family] = found.get(family, frozenset()) | {machine.vcpus}
    return found


#: AKS's minimum for a machine of a system pool.
_FEWEST_VCPUS: Final = 4
_LEAST_MIB: Final = 4096

_EXAMPLE: Final = "Write, for example, Standard_D4ds_v5."


def system_node_problems(nodes: AzureSystemNodes, location: str | None, at: str) -> Iterator[Problem]:
    """The problems of the system nodes; `location` is None if it is unknown."""
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
            value=f"{format_value(machine.name)}, which has {machine.gpus} GPUs",
            allowed="a machine without GPUs, because only AKS's services and operators run here",
            fix=_EXAMPLE,
        )
    elif machine.vcpus < _FEWEST_VCPUS or machine.memory_mib < _LEAST_MIB:
        yield Problem(
            field=field,
            value=f"{format_value(machine.name)}, which has {machine.vcpus} vCPUs and {machine.memory_mib} MiB",
            allowed=f"a machine of {_FEWEST_VCPUS} vCPUs and {_LEAST_MIB} MiB or more, AKS's minimum for a system pool",
            fix=_EXAMPLE,
        )


def zone_problems(zones: Sequence[str], location: str | None, at: str) -> Iterator[Problem]:
    """Zones that a location does not have, and duplicates; `location` is None if it is unknown."""
    yield from validation.duplicate_problems(zones, at, "zone")
    if location is None or not zones:
        return
    there = zones_here(location)
    for index, zone in enumerate(zones):
        if zone not in there:
            yield Problem(
                field=f"{at}[{index}]" if there else at,
                value=f"{zone} in {location}"
                if there
                else f"{', '.join(zones)} in {location}, which has no zones",
                allowed=f"one of its zones: {', '.join(there)}" if there else "no zones",
                fix=f"Write {there[0]}." if there else f"Leave it out, or change {LOCATION}.",
            )
            if not there:
                return
