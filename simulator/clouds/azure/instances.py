"""The virtual machines behind node pools, under the names that scale sets give them."""

import hashlib
from collections.abc import Sequence
from typing import Final

from holdfast.simulator.clouds.azure.nodes import NodeTemplate, pool_of, template_of
from holdfast.simulator.clouds.machines import Group, Machine, Register, key_of
from holdfast.simulator.clouds.state import CloudObject, Inventory

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


#: How many letters at the end of a machine's name are its number in its scale set.
NUMBER: Final = 6


def _scale_set(pool: CloudObject, name: str) -> str:
    """Return the name of a pool's scale set: another one for each pool there ever was."""
    number = int(hashlib.sha256(key_of(pool).encode()).hexdigest(), 16) % 10**8
    return f"aks-{name}-{number:08}-vmss"


def _name(pool: CloudObject, template: NodeTemplate, _zone: str, number: int) -> str:
    """Return a name as a scale set makes it: its own, and a number of six digits to the base of 36."""
    places = "".join(
        _DIGITS[number // len(_DIGITS) ** place % len(_DIGITS)] for place in reversed(range(NUMBER))
    )
    return f"{_scale_set(pool, template.name)}{places}"


REGISTER: Final = Register[NodeTemplate](type="rehearsal:aks/instance:Instance", name=_name)


STOCK_OUT: Final = "rehearsal:aks/stockOut:StockOut"


def sell_out(pool: str, inventory: Inventory) -> None:
    """Have no more machines for the node pool of this name."""
    inventory.put(CloudObject(type=STOCK_OUT, id=pool, urn="", inputs={}))


def restock(pool: str, inventory: Inventory) -> None:
    """Have machines again where they had been sold out. Harmless where they had not."""
    inventory.remove(STOCK_OUT, pool)


def is_sold_out(pool: str, inventory: Inventory) -> bool:
    """Whether a node pool gets no machine."""
    return inventory.find(STOCK_OUT, pool) is not None


def machines_of(group: Group) -> Sequence[Machine]:
    """Return the machines of a node pool; none where its cluster is not there."""
    pool = pool_of(group.target, group.inventory)
    if pool is None:
        return []
    template = template_of(pool)
    instances = REGISTER.instances_of(pool.target, template, group.inventory)
    return [template.machine(one.name, one.zone) for one in instances]
