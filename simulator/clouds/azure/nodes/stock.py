"""What of a pool's machines Azure has to sell: all that is asked for, unless it has been sold out.

A stock-out is an object of the cloud's own, put there by whoever wants to see what follows from it.
"""

from typing import Final

from holdfast.simulator.clouds.state import CloudObject, Inventory

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
