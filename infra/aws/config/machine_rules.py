"""The rules of instance types on AWS: they exist, the region has them, they can be bought as the pool buys them."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from holdfast.infra.config import machine_type_rules, market_rules
from holdfast.infra.config.one_way_rules import one_way_problems
from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import is_sold_in, machine_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.infra.aws.config.pool import AwsPool

_EC2: Final = market_rules.Market(
    cloud="aws",
    what="instance type",
    setting="aws:region",
    command="aws ec2 describe-instance-type-offerings --region {region}",
)


def machine_problems(pool: AwsPool, region: str, at: str) -> Iterator[Problem]:
    """Everything that is wrong with how a pool names its machines."""
    fields = {"instanceTypes": pool.instance_types, "families": pool.families, "sizes": pool.sizes}
    wrong = list(
        one_way_problems(
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
    """Instance types that do not exist or that a region does not have, and mixtures that one pool cannot be."""
    return market_rules.named_machines(types, region, _EC2, at)


def known_machines(types: Sequence[str], at: str) -> Iterator[Problem]:
    """Instance types that no region has, and mixtures that one pool cannot be."""
    return market_rules.known_machines(types, _EC2, at)


def _not_on_spot(pool: AwsPool, at: str) -> Iterator[Problem]:
    catalogue = machine_catalogue("aws")
    for index, name in enumerate(pool.instance_types or ()):
        machine = catalogue.get(name)
        if pool.capacity is CapacityType.SPOT and machine is not None and not machine.on_spot:
            yield Problem(
                field=f"{at}[{index}]",
                value=f"{shown(name)} on a spot pool",
                allowed="machines that EC2 sells on spot, and this one it never does",
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
                    value=f"{shown(name)}, with which {region} has no machine of this pool",
                    allowed=f"{field} that together with the pool's {'sizes' if place == 0 else 'families'} "
                    "name a machine",
                    fix=f'Write "{close[0]}", or remove it.' if close else "Remove it.",
                )
    yield from machine_type_rules.mixed_machines(chosen, f"{at}.families")
