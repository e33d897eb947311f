"""What of a pool's machines Compute Engine has to sell: all that is asked for, unless a zone has been sold out.

A stock-out is an object of the cloud's own, put there by whoever wants to see what follows from it.
"""

from typing import Final

from holdfast.simulator.clouds.state import CloudObject, Inventory

STOCK_OUT: Final = "rehearsal:gke/stockOut:StockOut"


def sell_out(pool: str, inventory: Inventory, *, zone: str = "") -> None:
    """Have no more machines for the pool of this name, in one zone or, by default, in any."""
    inventory.put(CloudObject(type=STOCK_OUT, id=_id(pool, zone), urn="", inputs={}))


def restock(pool: str, inventory: Inventory, *, zone: str = "") -> None:
    """Have machines again where they had been sold out. Harmless where they had not."""
    inventory.remove(STOCK_OUT, _id(pool, zone))


def is_sold_out(pool: str, zone: str, inventory: Inventory) -> bool:
    """Whether a pool gets no machine in a zone."""
    return any(inventory.find(STOCK_OUT, _id(pool, where)) for where in ("", zone))


def _id(pool: str, zone: str) -> str:
    return f"{pool}/{zone}" if zone else pool
