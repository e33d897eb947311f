"""What every pool of Karpenter's is refused."""

from collections.abc import Mapping
from typing import ClassVar

from holdfast.infra.config.pool_section import PoolSection

_NO_PRICE_CAP = (
    "Leave it out: Karpenter has no field that holds a price cap. Spot costs at most the on-demand price; "
    "a tier's procurementTimeout moves jobs on where it cannot be had."
)


class KarpenterPoolSection(PoolSection):
    """Nodes of one capacity type."""

    fixes: ClassVar[Mapping[str, str]] = {
        **PoolSection.fixes,
        "instanceType": "Write instanceTypes, a list.",
        "spotMaxPrice": _NO_PRICE_CAP,
        "spot_max_price": _NO_PRICE_CAP,
        "maxPrice": _NO_PRICE_CAP,
    }
