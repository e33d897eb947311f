"""Machines by family and size, for pools that list neither their types one by one nor every type there is."""

from collections.abc import Collection, Mapping

from holdfast.scheduling.machines.machine import Machine
from holdfast.scheduling.machines.market import is_sold_in


def select_machines(
    families: Collection[str], sizes: Collection[str], catalogue: Mapping[str, Machine], region: str
) -> tuple[Machine, ...]:
    """The machines of these families (`m7i`) in these sizes (`xlarge`) that a region of AWS sells.

    In the order of the families, then of the sizes: the same configuration gives the same pool. A family need not have
    every size.
    """
    names = dict.fromkeys(f"{family}.{size}" for family in families for size in sizes)
    return tuple(catalogue[name] for name in names if name in catalogue and is_sold_in(name, region))
