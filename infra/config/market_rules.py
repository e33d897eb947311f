"""The rules of machine types by name, where a cloud's regions do not all have the same: they exist, and the region has them."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from holdfast.infra.config import machine_type_rules
from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.machines import is_sold_in, machine_catalogue, regions_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_MOST_REGIONS_SHOWN: Final = 6


@dataclass(frozen=True, kw_only=True)
class Market:
    """A cloud that sells machines, and how a refusal speaks of it.

    `what` is a machine type in its words, `setting` the key under which a stack names its region, `command` what lists
    the machine types of one, with `{region}` in it.
    """

    cloud: str
    what: str
    setting: str
    command: str


def named_machines(types: Sequence[str], region: str, market: Market, at: str) -> Iterator[Problem]:
    """Machine types that do not exist or that a region does not have, and mixtures that one pool cannot be."""
    catalogue = machine_catalogue(market.cloud)
    here = {name: machine for name, machine in catalogue.items() if is_sold_in(name, region)}
    elsewhere = {index for index, name in enumerate(types) if name in catalogue and name not in here}
    for index in sorted(elsewhere):
        yield _elsewhere(types[index], region, market, here, f"{at}[{index}]")
    sold = machine_type_rules.Sold(
        # What another region has is known too, and has been spoken of.
        catalogue={**here, **{types[index]: catalogue[types[index]] for index in elsewhere}},
        allowed=f"the {len(here)} {market.what}s that {region} has",
        fix=f"Write one that `{market.command.format(region=region)}` lists.",
        what=market.what,
    )
    yield from machine_type_rules.instance_types(types, sold, at)


def known_machines(types: Sequence[str], market: Market, at: str) -> Iterator[Problem]:
    """Machine types that no region has, and mixtures that one pool cannot be."""
    catalogue = machine_catalogue(market.cloud)
    sold = machine_type_rules.Sold(
        catalogue=catalogue,
        allowed=f"the {len(catalogue)} {market.what}s that there are",
        fix=f"Write one that `{market.command.format(region='REGION')}` lists.",
        what=market.what,
    )
    yield from machine_type_rules.instance_types(types, sold, at)


def _elsewhere(name: str, region: str, market: Market, here: Collection[str], field: str) -> Problem:
    sellers = sorted(regions_of(name))
    more = len(sellers) - _MOST_REGIONS_SHOWN
    shown_sellers = ", ".join(sellers[:_MOST_REGIONS_SHOWN]) + (f" and {more} more" if more > 0 else "")
    close = get_close_matches(name, here, n=1)
    return Problem(
        field=field,
        value=f"{shown(name)}, which {region} does not have",
        allowed=f"it in {shown_sellers}; here, the {len(here)} {market.what}s that {region} has",
        fix=f'Write "{close[0]}", or change {market.setting}.'
        if close
        else f"Write another, or change {market.setting}.",
    )
