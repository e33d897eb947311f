"""The rules of pools on Azure, one by one and, of scale sets, together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from holdfast.components.pools.aks_names import agent_pool_name
from holdfast.infra.azure.config.locations import zone_problems
from holdfast.infra.azure.config.machine_rules import fixed_machine_problems, nap_machine_problems
from holdfast.infra.azure.config.pool import NO_CAP
from holdfast.infra.config.pools_and_ladders import POOLS
from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.labels import CapacityType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.infra.azure.config.pool import FixedPool, NapPool

#: As many as AKS takes of a price cap.
_DECIMALS: Final = 5


def nap_pool_problems(pool: NapPool, location: str | None, at: str) -> Iterator[Problem]:
    """Everything that is wrong with a pool of node auto-provisioning; `location` is None where it is not known."""
    wrong = list(nap_machine_problems(pool, location, at))
    yield from wrong
    if not wrong and location is not None:
        architectures = sorted({machine.arch for machine in pool.machines(location)})
        if len(architectures) > 1:
            yield Problem(
                field=at,
                value=f"machines of {' and '.join(architectures)}",
                allowed="machines of one architecture, because a job's image is built for one",
                fix="Make two pools of it.",
            )
    yield from zone_problems(pool.zones, location, f"{at}.zones")


def fixed_pool_problems(pool: FixedPool, location: str | None, at: str) -> Iterator[Problem]:
    """Everything that is wrong with a scale set; `location` is None where it is not known."""
    yield from fixed_machine_problems(pool, location, at)
    yield from _price_cap(pool, f"{at}.spotMaxPrice")
    yield from zone_problems(pool.zones, location, f"{at}.zones")


def scale_set_names(names: Mapping[int, str]) -> Iterator[Problem]:
    """Pools whose scale sets would have one name: AKS takes no hyphen in it, and 12 characters at most."""
    first: dict[str, int] = {}
    for index, name in names.items():
        other = first.setdefault(agent_pool_name(name), index)
        if names[other] != name:
            yield Problem(
                field=f"{POOLS}[{index}].name",
                value=f"{shown(name)}, which AKS would call {agent_pool_name(name)}, as it does {names[other]}",
                allowed="names that differ in their letters and digits: AKS takes no hyphens in a node pool's",
                fix=f"Rename one of the two, such as {shown(f'{name}-2')}.",
            )


def _price_cap(pool: FixedPool, field: str) -> Iterator[Problem]:
    cap = pool.spot_max_price
    if cap is None:
        return
    if pool.capacity is not CapacityType.SPOT:
        yield Problem(
            field=field,
            value=f"{cap:g} on a pool that is {pool.capacity.value}",
            allowed="nothing here: only spot machines have a price that moves",
            fix="Leave it out.",
        )
    elif cap != NO_CAP and not (math.isfinite(cap) and cap > 0 and round(cap, _DECIMALS) == cap):
        yield Problem(
            field=field,
            value=f"{cap:g}",
            allowed=f"USD an hour, above 0 and with up to {_DECIMALS} decimals, or -1 for up to the on-demand price",
            fix=f"Write `spotMaxPrice: {round(cap, _DECIMALS):g}`."
            if math.isfinite(cap) and round(cap, _DECIMALS) > 0
            else "Leave it out for up to the on-demand price.",
        )
