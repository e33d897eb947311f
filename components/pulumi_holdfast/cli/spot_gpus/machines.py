"""Chooses the machine types of an accelerator: equal numbers of GPUs, sold on spot and on demand in one region. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.machines import (
    Machine,
    attachable_to,
    is_sold_in,
    machine_catalogue,
    regions_of,
    with_attached,
)

#: GPUs that Compute Engine attaches get as many vCPUs each as the machines that bring theirs.
_VCPUS_PER_ATTACHED: Final = 8


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The machines of a spot pool and of its on-demand pool; all have `gpus` GPUs."""

    gpus: int
    spot: Sequence[Machine]
    on_demand: Sequence[Machine]

    @property
    def both(self) -> Sequence[Machine]:
        """All of them, each once."""
        return list(dict.fromkeys([*self.spot, *self.on_demand]))


def short_name(accelerator: str) -> str:
    """The name of an accelerator as users write it: `a100` for `nvidia-tesla-a100`."""
    return accelerator.removeprefix("nvidia-").removeprefix("tesla-")


def accelerators(cloud: str) -> Sequence[str]:
    """The short names of the accelerators that a cloud sells on spot and on demand."""
    return sorted(name for name, machines in _by_accelerator(cloud).items() if _groups(machines))


def select(cloud: str, accelerator: str, count: int, region: str) -> Selection:
    """The machines for `count` GPUs in a region: the largest that `count` fills, otherwise the smallest.

    Raises ConfigError if the cloud or the region does not sell the accelerator on spot and on demand.
    """
    known = _by_accelerator(cloud)
    if not _groups(known.get(accelerator, ())):
        raise _not_sold(cloud, accelerator, known)
    here = _groups(each for each in known[accelerator] if cloud == "gcp" or is_sold_in(each.name, region))
    if not here:
        raise _not_here(cloud, known[accelerator], region)
    filled = [gpus for gpus in here if gpus <= count]
    chosen = here[max(filled) if filled else min(here)]
    # A pool of GKE has one machine type.
    return _cheapest(chosen) if cloud == "gcp" else chosen


def _groups(machines: Iterable[Machine]) -> Mapping[int, Selection]:
    """By number of GPUs, the machines of one architecture, if some are sold on spot and some on demand."""
    by_size: dict[int, list[Machine]] = defaultdict(list)
    for machine in machines:
        by_size[machine.gpus].append(machine)
    selections: dict[int, Selection] = {}
    for gpus, sized in by_size.items():
        architecture = min(each.arch for each in sized)
        same = sorted(
            (each for each in sized if each.arch == architecture),
            key=lambda each: (each.hourly_price, each.name),
        )
        spot = [each for each in same if each.on_spot]
        on_demand = [each for each in same if each.on_demand]
        if spot and on_demand:
            selections[gpus] = Selection(gpus=gpus, spot=spot, on_demand=on_demand)
    return selections


def _cheapest(selection: Selection) -> Selection:
    return Selection(gpus=selection.gpus, spot=selection.spot[:1], on_demand=selection.on_demand[:1])


def _by_accelerator(cloud: str) -> Mapping[str, Sequence[Machine]]:
    found: dict[str, list[Machine]] = defaultdict(list)
    for machine in _with_gpus(cloud):
        found[short_name(machine.accelerator or "")].append(machine)
    return found


def _with_gpus(cloud: str) -> Iterator[Machine]:
    for machine in machine_catalogue(cloud).values():
        if machine.gpus and machine.accelerator:
            yield machine
        elif machine.name.startswith("n1-standard-"):
            for kind, counts in attachable_to(machine).items():
                if machine.vcpus // _VCPUS_PER_ATTACHED in counts:
                    yield with_attached(machine, kind, machine.vcpus // _VCPUS_PER_ATTACHED)


def _not_sold(cloud: str, accelerator: str, known: Mapping[str, Sequence[Machine]]) -> ConfigError:
    sold = accelerators(cloud)
    close = [
        *(name for name in sold if name.startswith(accelerator)),
        *get_close_matches(accelerator, sold),
        *sold,
    ]
    on_spot = "on spot only, so that jobs cannot fall back" if accelerator in known else "nothing"
    return ConfigError.of(
        field="--spot-gpus",
        value=f"{accelerator}, of which {cloud} sells {on_spot}",
        allowed=f"an accelerator that {cloud} sells on spot and on demand: {', '.join(sold)}",
        fix=f"Write --spot-gpus {close[0]}.",
    )


def _not_here(cloud: str, machines: Sequence[Machine], region: str) -> ConfigError:
    sold = sorted({each for machine in machines for each in regions_of(machine.name)})
    return ConfigError.of(
        field="--region",
        value=f"{region}, which does not sell {', '.join(each.name for each in machines[:4])} on spot and on demand",
        allowed=f"a region of {cloud} that does: {', '.join(sold)}",
        fix=f"Write --region {sold[0]}.",
    )
