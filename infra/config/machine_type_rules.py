"""Rules of lists of machine types, on every cloud. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from holdfast.scheduling.machines import Machine


@dataclass(frozen=True, kw_only=True)
class Sold:
    """The machine types that can be had, and how a refusal of another one speaks of them.

    `what` is a machine type in the cloud's words.
    """

    catalogue: Mapping[str, Machine]
    allowed: str
    fix: str
    what: str = "instance type"


def instance_types(types: Sequence[str], sold: Sold, at: str) -> Iterator[Problem]:
    """Types that cannot be had, stand there twice, or have GPUs beside others without."""
    for index, name in enumerate(types):
        if name not in sold.catalogue:
            close = nearest_name(name, sold.catalogue)
            yield Problem(
                field=f"{at}[{index}]",
                value=shown(name),
                allowed=sold.allowed,
                fix=f'Write "{close}".' if close else sold.fix,
            )
        elif name in types[:index]:
            yield Problem(
                field=f"{at}[{index}]",
                value=f"{shown(name)} a second time",
                allowed=f"each {sold.what} once",
                fix="Remove one of the two.",
            )
    yield from mixed_machines([sold.catalogue[name] for name in types if name in sold.catalogue], at)


def nearest_name(name: str, known: Collection[str]) -> str | None:
    """The known name that somebody most likely meant: the same in another case, else one like it."""
    spelled = {one.lower(): one for one in known}
    # Azure's portal leaves out the first word of a VM size.
    whole = (key for key in spelled if key.endswith(f"_{name.lower()}"))
    close = next(whole, None) or next(iter(get_close_matches(name.lower(), spelled, n=1)), None)
    return None if close is None else spelled[close]


def mixed_machines(machines: Sequence[Machine], at: str) -> Iterator[Problem]:
    """Machines with GPUs beside others without."""
    if len({machine.gpus > 0 for machine in machines}) > 1:
        yield Problem(
            field=at,
            value=", ".join(f"{machine.name} with {machine.gpus} GPUs" for machine in machines),
            allowed="machines that all have GPUs or all have none, because the pool's taint speaks for all of them",
            fix="Make two pools of it.",
        )
