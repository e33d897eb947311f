"""Validates lists of machine types, on every cloud. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.machines import Machine, is_sold_in, machine_catalogue, regions_of


@dataclass(frozen=True, kw_only=True)
class MachineOffer:
    """The machine types that are available, and the texts of problems about others.

    `what` is the cloud's term for a machine type.
    """

    catalogue: Mapping[str, Machine]
    allowed: str
    fix: str
    what: str = "instance type"


def machine_type_problems(types: Sequence[str], offer: MachineOffer, at: str) -> Iterator[Problem]:
    """Types that are not available, duplicates, and lists of machines with and without GPUs."""
    for index, name in enumerate(types):
        if name not in offer.catalogue:
            close = nearest_name(name, offer.catalogue)
            yield Problem(
                field=f"{at}[{index}]",
                value=format_value(name),
                allowed=offer.allowed,
                fix=f'Write "{close}".' if close else offer.fix,
            )
        elif name in types[:index]:
            yield Problem(
                field=f"{at}[{index}]",
                value=f"{format_value(name)}, a duplicate",
                allowed=f"each {offer.what} once",
                fix="Remove one of the two.",
            )
    yield from mixed_gpu_problems([offer.catalogue[name] for name in types if name in offer.catalogue], at)


def nearest_name(name: str, known: Collection[str]) -> str | None:
    """The known name closest to a name: the same in another case, otherwise a similar one."""
    by_lower_case = {one.lower(): one for one in known}
    # Azure's portal omits the prefix of a VM size.
    with_prefix = (key for key in by_lower_case if key.endswith(f"_{name.lower()}"))
    close = next(with_prefix, None) or next(iter(get_close_matches(name.lower(), by_lower_case, n=1)), None)
    return None if close is None else by_lower_case[close]


def mixed_gpu_problems(machines: Sequence[Machine], at: str) -> Iterator[Problem]:
    """Machines with and without GPUs in one pool."""
    if len({machine.gpus > 0 for machine in machines}) > 1:
        yield Problem(
            field=at,
            value=", ".join(f"{machine.name} with {machine.gpus} GPUs" for machine in machines),
            allowed="machines that all have GPUs or all have none, because the pool's taint applies to all of them",
            fix="Write two pools instead.",
        )


def mixed_architecture_problems(machines: Sequence[Machine], at: str) -> Iterator[Problem]:
    """Machines of several architectures in one pool."""
    architectures = sorted({machine.arch for machine in machines})
    if len(architectures) > 1:
        yield Problem(
            field=at,
            value=f"machines of {' and '.join(architectures)}",
            allowed="machines of one architecture, because a job's image supports one",
            fix="Write two pools instead.",
        )


_MOST_REGIONS_SHOWN: Final = 6


@dataclass(frozen=True, kw_only=True)
class CloudTerms:
    """A cloud's terms in problems of its machine types and regions.

    `what` is the cloud's term for a machine type, `setting` the key of a stack's region, `command` the command that
    lists the machine types of a region, with the placeholder `{region}`.
    """

    cloud: str
    what: str
    setting: str
    command: str


def regional_machine_problems(
    types: Sequence[str], region: str, terms: CloudTerms, at: str
) -> Iterator[Problem]:
    """Machine types that do not exist or that the region does not offer, and invalid combinations."""
    catalogue = machine_catalogue(terms.cloud)
    here = {name: machine for name, machine in catalogue.items() if is_sold_in(name, region)}
    elsewhere = {index for index, name in enumerate(types) if name in catalogue and name not in here}
    for index in sorted(elsewhere):
        yield _elsewhere(types[index], region, terms, here, f"{at}[{index}]")
    offer = MachineOffer(
        # Types of other regions are already reported above.
        catalogue={**here, **{types[index]: catalogue[types[index]] for index in elsewhere}},
        allowed=f"one of the {len(here)} {terms.what}s that {region} offers",
        fix=f"Write one that `{terms.command.format(region=region)}` lists.",
        what=terms.what,
    )
    yield from machine_type_problems(types, offer, at)


def known_machine_problems(types: Sequence[str], terms: CloudTerms, at: str) -> Iterator[Problem]:
    """Machine types that no region offers, and invalid combinations."""
    catalogue = machine_catalogue(terms.cloud)
    offer = MachineOffer(
        catalogue=catalogue,
        allowed=f"one of the {len(catalogue)} known {terms.what}s",
        fix=f"Write one that `{terms.command.format(region='REGION')}` lists.",
        what=terms.what,
    )
    yield from machine_type_problems(types, offer, at)


def _elsewhere(name: str, region: str, terms: CloudTerms, here: Collection[str], field: str) -> Problem:
    sellers = sorted(regions_of(name))
    more = len(sellers) - _MOST_REGIONS_SHOWN
    shown_sellers = ", ".join(sellers[:_MOST_REGIONS_SHOWN]) + (f" and {more} more" if more > 0 else "")
    close = get_close_matches(name, here, n=1)
    return Problem(
        field=field,
        value=f"{format_value(name)}, which {region} does not offer",
        allowed=f"one of the {len(here)} {terms.what}s that {region} offers; this one only in {shown_sellers}",
        fix=f'Write "{close[0]}", or change {terms.setting}.'
        if close
        else f"Write another {terms.what}, or change {terms.setting}.",
    )


def machine_selection_problems(
    named: tuple[str, str], parts: Mapping[str, str], given: frozenset[str], at: str
) -> Iterator[Problem]:
    """A pool with no machine types, with two ways to select them, or with half of one.

    `named` is the field of a list of names, `parts` are the fields that select by properties and belong together; each
    with an example. `given` are the fields in the document.
    """
    field, example = named
    ways = f"either {field}, or {' and '.join(parts)}"
    there = [part for part in parts if part in given]
    if field in given and there:
        yield Problem(
            field=f"{at}.{there[0]}",
            value=f"{' and '.join(there)} in addition to {field}",
            allowed=ways,
            fix="Remove one of the two.",
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
