"""Validates the pools and the machine types of an AWS stack's configuration."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.aws.config.fields import is_zone_of
from pulumi_holdfast.config import machine_validation
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.machine_validation import machine_selection_problems
from pulumi_holdfast.config.reservation import reservation_problems
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import is_sold_in, machine_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulumi_holdfast.aws.config.pool import AwsPool
    from pulumi_holdfast.ladder.machines import Machine


def zone_problems(zones: Sequence[str], region: str, at: str) -> Iterator[Problem]:
    """Zones of other regions, and zones that cannot have an EKS cluster."""
    for index, zone in enumerate(zones):
        if not is_zone_of(zone, region):
            yield Problem(
                field=f"{at}[{index}]",
                value=format_value(zone),
                allowed=f"a zone of {region}, the stack's region: {region}a, {region}b and so on",
                fix=f'Write "{region}{zone[-1]}", or change aws:region.',
            )


#: The requests of the operators, Karpenter (1 GiB) and EKS's agents on one of two nodes, with a reserve.
_FEWEST_VCPUS: Final = 2
_LEAST_MIB: Final = 4096


def system_machine_problems(types: Sequence[str], region: str | None, at: str) -> Iterator[Problem]:
    """The problems of the system nodes' instance types; `region` is None if it is unknown."""
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
            allowed="machines of one architecture, because a node group has one image",
            fix="Remove those of one architecture.",
        )


def _unfit(machine: Machine, field: str) -> Iterator[Problem]:
    if machine.gpus:
        yield Problem(
            field=field,
            value=f"{format_value(machine.name)}, which has {machine.gpus} GPUs",
            allowed="machines without GPUs, because only operators run here",
            fix="Write, for example, m7i.large.",
        )
    if machine.vcpus < _FEWEST_VCPUS or machine.memory_mib < _LEAST_MIB:
        yield Problem(
            field=field,
            value=f"{format_value(machine.name)}, which has {machine.vcpus} vCPUs and {machine.memory_mib} MiB",
            allowed=f"machines of {_FEWEST_VCPUS} vCPUs and {_LEAST_MIB} MiB or more; two of them run all operators",
            fix="Write, for example, m7i.large.",
        )


def pool_problems(pool: AwsPool, *, region: str, network_zones: Sequence[str], at: str) -> Iterator[Problem]:
    """The problems of a pool in a region.

    `network_zones` are the zones of the network, empty if the configuration does not name them.
    """
    wrong = list(machine_problems(pool, region, at))
    yield from wrong
    if not wrong:
        yield from _hardware(pool, pool.machines(region), at)
    yield from _zones(pool, region, network_zones, at)
    yield from _reservation(pool, at)


def _reservation(pool: AwsPool, at: str) -> Iterator[Problem]:
    """A reservation is of one instance type in one zone."""
    yield from reservation_problems(
        pool.capacity,
        {"reservation": pool.reservation},
        at,
        example="reservation: {id: cr-0123456789abcdef0}",
    )
    if pool.capacity is not CapacityType.RESERVED:
        return
    if len(pool.instance_types or ()) != 1:
        yield Problem(
            field=f"{at}.instanceTypes",
            value=f"{len(pool.instance_types or ())} instance types on a reserved pool",
            allowed="one instance type, because a reservation is of one",
            fix="Write instanceTypes with the type of the reservation.",
        )
    if len(pool.zones or ()) != 1:
        yield Problem(
            field=f"{at}.zones",
            value=f"{len(pool.zones or ()) or 'all'} zones on a reserved pool",
            allowed="one zone, because a reservation is in one",
            fix="Write zones with the zone of the reservation.",
        )
    if pool.placement_group:
        yield Problem(
            field=f"{at}.placementGroup",
            value="true on a reserved pool",
            allowed="nothing: a reservation has the placement it was made with, and EC2 launches into no other group from it",
            fix="Leave it out.",
        )


def _hardware(pool: AwsPool, machines: Sequence[Machine], at: str) -> Iterator[Problem]:
    without = [machine.name for machine in machines if not machine.efa_interfaces]
    if pool.efa and without:
        yield Problem(
            field=f"{at}.efa",
            value=f"true, but these have no Elastic Fabric Adapter: {', '.join(without)}",
            allowed="true only if all machines of the pool have one",
            fix="Remove these machines, or efa.",
        )
    yield from machine_validation.mixed_architecture_problems(machines, at)


def _zones(pool: AwsPool, region: str, network_zones: Sequence[str], at: str) -> Iterator[Problem]:
    zones = pool.zones or ()
    outside = list(zone_problems(zones, region, f"{at}.zones"))
    yield from outside
    if network_zones and not outside:
        for index, zone in enumerate(zones):
            if zone not in network_zones:
                yield Problem(
                    field=f"{at}.zones[{index}]",
                    value=format_value(zone),
                    allowed=f"the zones of the network: {', '.join(network_zones)}",
                    fix="Write one of them, or add it to network.zones.",
                )
    if pool.placement_group and len(zones) != 1:
        example = next(iter([*zones, *network_zones]), f"{region}a")
        yield Problem(
            field=f"{at}.placementGroup",
            value=f"true on a pool in {len(zones) or 'all'} zones",
            allowed="true on a pool in one zone, because placement is within a zone",
            fix=f"Add `zones: [{example}]`, or leave it out.",
        )


_EC2: Final = machine_validation.CloudTerms(
    cloud="aws",
    what="instance type",
    setting="aws:region",
    command="aws ec2 describe-instance-type-offerings --region {region}",
)


def machine_problems(pool: AwsPool, region: str, at: str) -> Iterator[Problem]:
    """The problems of a pool's selection of machine types."""
    fields = {"instanceTypes": pool.instance_types, "families": pool.families, "sizes": pool.sizes}
    wrong = list(
        machine_selection_problems(
            ("instanceTypes", "[m7i.xlarge, m7a.xlarge]"),
            {"families": "[m7i, m7a]", "sizes": "[xlarge]"},
            frozenset(field for field, given in fields.items() if given is not None),
            at,
        )
    )
    yield from wrong
    if wrong:
        return
    if pool.instance_types is not None:
        yield from named_machines(pool.instance_types, region, f"{at}.instanceTypes")
        yield from _not_on_spot(pool, f"{at}.instanceTypes")
    else:
        yield from _families_and_sizes(pool, region, at)


def named_machines(types: Sequence[str], region: str, at: str) -> Iterator[Problem]:
    """Instance types that do not exist or that the region does not offer, and invalid combinations."""
    return machine_validation.regional_machine_problems(types, region, _EC2, at)


def known_machines(types: Sequence[str], at: str) -> Iterator[Problem]:
    """Instance types that no region offers, and invalid combinations."""
    return machine_validation.known_machine_problems(types, _EC2, at)


def _not_on_spot(pool: AwsPool, at: str) -> Iterator[Problem]:
    catalogue = machine_catalogue("aws")
    for index, name in enumerate(pool.instance_types or ()):
        machine = catalogue.get(name)
        if pool.capacity is CapacityType.SPOT and machine is not None and not machine.on_spot:
            yield Problem(
                field=f"{at}[{index}]",
                value=f"{format_value(name)} on a spot pool",
                allowed="a machine type that EC2 offers on spot; it never offers this one",
                fix="Leave it out, or write capacity: on-demand.",
            )


def _families_and_sizes(pool: AwsPool, region: str, at: str) -> Iterator[Problem]:
    chosen = pool.machines(region)
    here = [name for name in machine_catalogue("aws") if is_sold_in(name, region)]
    for place, field, names in ((0, "families", pool.families or ()), (1, "sizes", pool.sizes or ())):
        useful = {machine.name.split(".")[place] for machine in chosen}
        known = sorted({name.split(".")[place] for name in here})
        for index, name in enumerate(names):
            if name not in useful:
                close = [found for found in get_close_matches(name, known, n=2) if found != name]
                yield Problem(
                    field=f"{at}.{field}[{index}]",
                    value=f"{format_value(name)}, which matches no machine of this pool in {region}",
                    allowed=f"{field} that match a machine together with the pool's "
                    f"{'sizes' if place == 0 else 'families'}",
                    fix=f'Write "{close[0]}", or remove it.' if close else "Remove it.",
                )
    yield from machine_validation.mixed_gpu_problems(chosen, f"{at}.families")
