"""Rules of lists of machine types, on every cloud. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from holdfast.infra.config.errors import format_value
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.machines import is_sold_in, machine_catalogue, regions_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from holdfast.scheduling.machines import Machine


@dataclass(frozen=True, kw_only=True)
class MachineOffer:
    """The machine types that can be had, and how a refusal of another one speaks of them.

    `what` is a machine type in the cloud's words.
    """

    catalogue: Mapping[str, Machine]
    allowed: str
    fix: str
    what: str = "instance type"


def machine_type_problems(types: Sequence[str], sold: MachineOffer, at: str) -> Iterator[Problem]:
    """Types that cannot be had, stand there twice, or have GPUs beside others without."""
    for index, name in enumerate(types):
        if name not in sold.catalogue:
            close = nearest_name(name, sold.catalogue)
            yield Problem(
                field=f"{at}[{index}]",
                value=format_value(name),
                allowed=sold.allowed,
                fix=f'Write "{close}".' if close else sold.fix,
            )
        elif name in types[:index]:
            yield Problem(
                field=f"{at}[{index}]",
                value=f"{format_value(name)} a second time",
                allowed=f"each {sold.what} once",
                fix="Remove one of the two.",
            )
    yield from mixed_gpu_problems([sold.catalogue[name] for name in types if name in sold.catalogue], at)


def nearest_name(name: str, known: Collection[str]) -> str | None:
    """The known name that somebody most likely meant: the same in another case, else one like it."""
    spelled = {one.lower(): one for one in known}
    # Azure's portal leaves out the first word of a VM size.
    whole = (key for key in spelled if key.endswith(f"_{name.lower()}"))
    close = next(whole, None) or next(iter(get_close_matches(name.lower(), spelled, n=1)), None)
    return None if close is None else spelled[close]


def mixed_gpu_problems(machines: Sequence[Machine], at: str) -> Iterator[Problem]:
    """Machines with GPUs beside others without."""
    if len({machine.gpus > 0 for machine in machines}) > 1:
        yield Problem(
            field=at,
            value=", ".join(f"{machine.name} with {machine.gpus} GPUs" for machine in machines),
            allowed="machines that all have GPUs or all have none, because the pool's taint speaks for all of them",
            fix="Make two pools of it.",
        )


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


def regional_machine_problems(
    types: Sequence[str], region: str, market: Market, at: str
) -> Iterator[Problem]:
    """Machine types that do not exist or that a region does not have, and mixtures that one pool cannot be."""
    catalogue = machine_catalogue(market.cloud)
    here = {name: machine for name, machine in catalogue.items() if is_sold_in(name, region)}
    elsewhere = {index for index, name in enumerate(types) if name in catalogue and name not in here}
    for index in sorted(elsewhere):
        yield _elsewhere(types[index], region, market, here, f"{at}[{index}]")
    sold = MachineOffer(
        # What another region has is known too, and has been spoken of.
        catalogue={**here, **{types[index]: catalogue[types[index]] for index in elsewhere}},
        allowed=f"the {len(here)} {market.what}s that {region} has",
        fix=f"Write one that `{market.command.format(region=region)}` lists.",
        what=market.what,
    )
    yield from machine_type_problems(types, sold, at)


def known_machine_problems(types: Sequence[str], market: Market, at: str) -> Iterator[Problem]:
    """Machine types that no region has, and mixtures that one pool cannot be."""
    catalogue = machine_catalogue(market.cloud)
    sold = MachineOffer(
        catalogue=catalogue,
        allowed=f"the {len(catalogue)} {market.what}s that there are",
        fix=f"Write one that `{market.command.format(region='REGION')}` lists.",
        what=market.what,
    )
    yield from machine_type_problems(types, sold, at)


def _elsewhere(name: str, region: str, market: Market, here: Collection[str], field: str) -> Problem:
    sellers = sorted(regions_of(name))
    more = len(sellers) - _MOST_REGIONS_SHOWN
    shown_sellers = ", ".join(sellers[:_MOST_REGIONS_SHOWN]) + (f" and {more} more" if more > 0 else "")
    close = get_close_matches(name, here, n=1)
    return Problem(
        field=field,
        value=f"{format_value(name)}, which {region} does not have",
        allowed=f"it in {shown_sellers}; here, the {len(here)} {market.what}s that {region} has",
        fix=f'Write "{close[0]}", or change {market.setting}.'
        if close
        else f"Write another, or change {market.setting}.",
    )


def machine_selection_problems(
    named: tuple[str, str], parts: Mapping[str, str], given: frozenset[str], at: str
) -> Iterator[Problem]:
    """Machines that are named in no way, in two ways, or by half of one.

    `named` is the field of the one way, `parts` are those of the other, which go together; each with an example. `given`
    are the fields that stand there.
    """
    field, example = named
    ways = f"either {field}, or {' and '.join(parts)}"
    there = [part for part in parts if part in given]
    if field in given and there:
        yield Problem(
            field=f"{at}.{there[0]}",
            value=f"{' and '.join(there)} beside {field}",
            allowed=ways,
            fix="Leave out the one or the other.",
        )
    elif field not in given and not there:
        others = " and ".join(f"`{part}: {written}`" for part, written in parts.items())
        yield Problem(
            field=f"{at}.{field}",
            value="nothing",
            allowed=ways,
            fix=f"Add `{field}: {example}`, or {others}.",
        )
    elif field not in given:
        for part in parts:
            if part not in given:
                yield Problem(
                    field=f"{at}.{part}", value="nothing", allowed=ways, fix=f"Add `{part}: {parts[part]}`."
                )
