"""The machines of GKE node pools: names, stock, and the nodes that they become."""

import hashlib
from collections.abc import Sequence
from typing import Final

from holdfast.simulator.clouds.gcp.nodes import NodeTemplate, template_of
from holdfast.simulator.clouds.machines import Group, Instance, Register, SimulatedMachine, State, key_of
from holdfast.simulator.clouds.state import CloudObject, Inventory

__all__ = [
    "INSTANCE",
    "Instance",
    "State",
    "drop",
    "forget_lost_pools",
    "instances_of",
    "new_instance",
    "record",
]

INSTANCE: Final = "rehearsal:gke/instance:Instance"
# A node name has at most 63 characters.
_LONGEST_PART: Final = 20
_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_STRIDE: Final = 1_000_003


def _name(pool: CloudObject, template: NodeTemplate, zone: str, number: int) -> str:
    """Return a machine's name: cluster, pool, the instance group of the zone, and four characters."""
    group = hashlib.sha256(f"{key_of(pool)}|{zone}".encode()).hexdigest()[:8]
    # The stride is coprime to the number of names, so that each number has its own name.
    place = (int(group, 16) + number * _STRIDE) % len(_LETTERS) ** 4
    letters = "".join(_LETTERS[place // len(_LETTERS) ** digit % len(_LETTERS)] for digit in range(4))
    return "-".join(("gke", _part(template.cluster), _part(template.name), group, letters))


def _part(name: str) -> str:
    return name[:_LONGEST_PART].strip("-")


_REGISTER: Final = Register[NodeTemplate](type=INSTANCE, name=_name)
instances_of = _REGISTER.instances_of
new_instance = _REGISTER.new_instance
record = _REGISTER.record
drop = _REGISTER.drop
forget_lost_pools = _REGISTER.forget_lost_pools


STOCK_OUT: Final = "rehearsal:gke/stockOut:StockOut"


def sell_out(pool: str, inventory: Inventory, *, zone: str = "") -> None:
    """Put the pool with this name out of stock, in one zone or (default) in all."""
    inventory.put(CloudObject(type=STOCK_OUT, id=_id(pool, zone), urn="", inputs={}))


def restock(pool: str, inventory: Inventory, *, zone: str = "") -> None:
    """Put a sold-out pool back in stock; idempotent."""
    inventory.remove(STOCK_OUT, _id(pool, zone))


def is_sold_out(pool: str, zone: str, inventory: Inventory) -> bool:
    """Whether a pool is out of stock in a zone."""
    return any(inventory.find(STOCK_OUT, _id(pool, where)) for where in ("", zone))


def _id(pool: str, zone: str) -> str:
    return f"{pool}/{zone}" if zone else pool


def machines_of(group: Group) -> Sequence[SimulatedMachine]:
    """Return the running machines of a node pool."""
    template = template_of(group.target, group.inventory)
    return [
        template.machine(one.name, one.zone)
        for one in instances_of(group.target, template, group.inventory)
        if one.state is State.RUNNING
    ]
