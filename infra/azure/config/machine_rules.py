"""The rules of VM sizes on Azure: they exist, the location has them, they can be bought as the pool buys them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.infra.azure.config.locations import LOCATION
from holdfast.infra.config import market_rules
from holdfast.infra.config.machine_type_rules import mixed_machines, nearest_name
from holdfast.infra.config.one_way_rules import one_way_problems
from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import family_of, is_sold_in, machine_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.infra.azure.config.pool import FixedPool, NapPool
    from holdfast.scheduling.machines import Machine

_AZURE: Final = market_rules.Market(
    cloud="azure",
    what="VM size",
    setting=LOCATION,
    command="az vm list-skus --location {region} --resource-type virtualMachines --query [].name",
)


def nap_machine_problems(pool: NapPool, location: str | None, at: str) -> Iterator[Problem]:
    """Everything that is wrong with how a pool of node auto-provisioning names its machines."""
    fields = {"vmSizes": pool.vm_sizes, "families": pool.families, "vcpus": pool.vcpus}
    wrong = list(
        one_way_problems(
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
        catalogue = machine_catalogue("azure")
        for index, name in enumerate(pool.vm_sizes):
            if name in catalogue:
                yield from _sold(pool.capacity, catalogue[name], f"{at}.vmSizes[{index}]")
    elif location is not None:
        yield from _families_and_vcpus(pool, location, at)


def named_machine(name: str, location: str | None, field: str) -> Iterator[Problem]:
    """A VM size that there is not, or that a location does not have."""
    for problem in _named((name,), location, field):
        yield Problem(field=field, value=problem.value, allowed=problem.allowed, fix=problem.fix)


def fixed_machine_problems(pool: FixedPool, location: str | None, at: str) -> Iterator[Problem]:
    """Everything that is wrong with the VM size of a scale set."""
    field = f"{at}.vmSize"
    yield from named_machine(pool.vm_size, location, field)
    machine = pool.machine()
    if machine is not None:
        yield from _sold(pool.capacity, machine, field)


def _named(names: Sequence[str], location: str | None, at: str) -> Iterator[Problem]:
    # Azure takes a name without its first word, and in any case; a node's label and a NodePool do not.
    if location is None:
        yield from market_rules.known_machines(names, _AZURE, at)
    else:
        yield from market_rules.named_machines(names, location, _AZURE, at)


def _sold(capacity: CapacityType, machine: Machine, field: str) -> Iterator[Problem]:
    if capacity is CapacityType.SPOT and not machine.on_spot:
        yield Problem(
            field=field,
            value=f"{shown(machine.name)} on a spot pool",
            allowed="machines that Azure sells on spot, and this one it never does",
            fix="Write another, or capacity: on-demand.",
        )


def _families_and_vcpus(pool: NapPool, location: str, at: str) -> Iterator[Problem]:
    families, numbers = pool.families or (), pool.vcpus or ()
    there = _numbers_by_family(pool.capacity, location)
    how = " on spot" if pool.capacity is CapacityType.SPOT else ""
    unknown = [name for name in families if name not in there]
    for name in unknown:
        close = nearest_name(name, there)
        yield Problem(
            field=f"{at}.families[{families.index(name)}]",
            value=f"{shown(name)}, of which {location} has no VM size{how}",
            allowed="a family: the name of a VM size without its number, such as Dds_v5 for Standard_D4ds_v5",
            fix=f'Write "{close}".' if close else "Remove it.",
        )
    if unknown:
        # With another family other numbers may be right.
        return
    known = {number for name in families for number in there[name]}
    for index, number in enumerate(numbers):
        if number not in known:
            yield Problem(
                field=f"{at}.vcpus[{index}]",
                value=f"{number}, which no VM size of {', '.join(families)} has{how}",
                allowed=f"numbers that these families have: {', '.join(map(str, sorted(known)))}",
                fix="Write one of them, or remove it.",
            )
    for index, name in enumerate(families):
        if known & set(numbers) and there[name].isdisjoint(numbers):
            yield Problem(
                field=f"{at}.families[{index}]",
                value=f"{shown(name)}, of which no VM size has {' or '.join(map(str, numbers))} vCPUs{how}",
                allowed=f"families with one of the pool's vcpus; this one has {', '.join(map(str, sorted(there[name])))}",
                fix="Remove it, or add one of its numbers to vcpus.",
            )
    yield from mixed_machines(pool.machines(location), f"{at}.families")


def _numbers_by_family(capacity: CapacityType, location: str) -> Mapping[str, frozenset[int]]:
    """The vCPUs of each family's VM sizes that a location sells so."""
    found: dict[str, frozenset[int]] = {}
    for name, machine in machine_catalogue("azure").items():
        family = family_of(name)
        sold = machine.on_spot if capacity is CapacityType.SPOT else machine.on_demand
        if family is not None and sold and is_sold_in(name, location):
            found[family] = found.get(family, frozenset()) | {machine.vcpus}
    return found
