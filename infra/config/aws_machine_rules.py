"""The rules of instance types on AWS: they exist, the region has them, they can be bought as the pool buys them."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from infra.config import rules
from infra.config.problems import shown
from scheduling.errors import Problem
from scheduling.labels import CapacityType
from scheduling.machines import is_sold_in, machine_catalogue, regions_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from infra.config.aws_pool import AwsPool

_ONE_WAY: Final = "either instanceTypes, or families and sizes"
_MOST_REGIONS_SHOWN: Final = 6


def machine_problems(pool: AwsPool, region: str, at: str) -> Iterator[Problem]:
    """Everything that is wrong with how a pool names its machines."""
    by_family = {"families": pool.families is not None, "sizes": pool.sizes is not None}
    given = [field for field, is_given in by_family.items() if is_given]
    if pool.instance_types is not None and given:
        yield Problem(
            field=f"{at}.{given[0]}",
            value=f"{' and '.join(given)} beside instanceTypes",
            allowed=_ONE_WAY,
            mend="Leave out the one or the other.",
        )
    elif pool.instance_types is not None:
        yield from named_machines(pool.instance_types, region, f"{at}.instanceTypes")
        yield from _not_on_spot(pool, f"{at}.instanceTypes")
    elif len(given) == len(by_family):
        yield from _families_and_sizes(pool, region, at)
    elif given:
        missing, example = ("sizes", "[xlarge]") if given == ["families"] else ("families", "[m7i, m7a]")
        yield Problem(
            field=f"{at}.{missing}", value="nothing", allowed=_ONE_WAY, mend=f"Add `{missing}: {example}`."
        )
    else:
        yield Problem(
            field=f"{at}.instanceTypes",
            value="nothing",
            allowed=_ONE_WAY,
            mend="Add `instanceTypes: [m7i.xlarge, m7a.xlarge]`, or `families: [m7i, m7a]` and `sizes: [xlarge]`.",
        )


def named_machines(types: Sequence[str], region: str, at: str) -> Iterator[Problem]:
    """Instance types that do not exist or that a region does not have, and mixtures that one pool cannot be."""
    catalogue = machine_catalogue("aws")
    here = {name: machine for name, machine in catalogue.items() if is_sold_in(name, region)}
    elsewhere = {index for index, name in enumerate(types) if name in catalogue and name not in here}
    for index in sorted(elsewhere):
        yield _elsewhere(types[index], region, list(here), f"{at}[{index}]")
    sold = rules.Sold(
        # What another region has is known too, and has been spoken of.
        catalogue={**here, **{types[index]: catalogue[types[index]] for index in elsewhere}},
        allowed=f"the {len(here)} instance types that {region} has",
        mend=f"Write one that `aws ec2 describe-instance-type-offerings --region {region}` lists.",
    )
    yield from rules.instance_types(types, sold, at)


def known_machines(types: Sequence[str], at: str) -> Iterator[Problem]:
    """Instance types that no region has, and mixtures that one pool cannot be."""
    sold = rules.Sold(
        catalogue=machine_catalogue("aws"),
        allowed=f"the {len(machine_catalogue('aws'))} instance types that EC2 has",
        mend="Write one that `aws ec2 describe-instance-type-offerings` lists.",
    )
    yield from rules.instance_types(types, sold, at)


def _elsewhere(name: str, region: str, here: Sequence[str], field: str) -> Problem:
    sellers = sorted(regions_of(name))
    more = len(sellers) - _MOST_REGIONS_SHOWN
    shown_sellers = ", ".join(sellers[:_MOST_REGIONS_SHOWN]) + (f" and {more} more" if more > 0 else "")
    close = get_close_matches(name, here, n=1)
    return Problem(
        field=field,
        value=f"{shown(name)}, which {region} does not have",
        allowed=f"it in {shown_sellers}; here, the {len(here)} instance types that {region} has",
        mend=f'Write "{close[0]}", or change aws:region.'
        if close
        else "Write another, or change aws:region.",
    )


def _not_on_spot(pool: AwsPool, at: str) -> Iterator[Problem]:
    catalogue = machine_catalogue("aws")
    for index, name in enumerate(pool.instance_types or ()):
        machine = catalogue.get(name)
        if pool.capacity is CapacityType.SPOT and machine is not None and not machine.on_spot:
            yield Problem(
                field=f"{at}[{index}]",
                value=f"{shown(name)} on a spot pool",
                allowed="machines that EC2 sells on spot, and this one it never does",
                mend="Leave it out, or write capacity: on-demand.",
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
                    mend=f'Write "{close[0]}", or remove it.' if close else "Remove it.",
                )
    yield from rules.mixed_machines(chosen, f"{at}.families")
