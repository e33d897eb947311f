"""What the data of a job costs on a tier in another region, while its checkpoints stay in the store of its own region.

A start over there reads a checkpoint from the home region, and each checkpoint from there is written to it; the cloud charges both
by the GiB. A job that comes home reads its checkpoint within the region, for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.ladder.prices import price_facts

if TYPE_CHECKING:
    from pulumi_holdfast.analysis.economics.tier_costs import PoolRates

# The ways that data takes from a home to a cluster that accepts its jobs, and back: EKS clusters alone accept jobs.
_WAYS: Final[Mapping[str, Sequence[str]]] = {
    "aws": ("aws-between-regions",),
    "azure": ("azure-internet", "aws-internet"),
    "gcp": ("gcp-internet", "aws-internet"),
}
#: The clouds of a job's home.
HOMES: Final = tuple(_WAYS)


@dataclass(frozen=True, kw_only=True)
class RemoteTier:
    """A tier in another region, and the checkpoints of a job that runs there.

    `rates` are the tier's, with prices relative to on-demand. `size_gib` is a checkpoint of the whole job, `price_per_gib` what the
    cloud charges between the regions, `on_demand_price` an hour of all the job's machines, both in USD. `otherwise` is what an hour
    of training costs on the tiers below.

    Raises ValueError, naming the field, for a negative or infinite value, and for a price of 0 of machines.
    """

    rates: PoolRates
    size_gib: float
    checkpoints_per_hour: float
    on_demand_price: float
    price_per_gib: float
    otherwise: float = 1.0

    def __post_init__(self) -> None:
        for field in ("size_gib", "checkpoints_per_hour", "on_demand_price", "price_per_gib", "otherwise"):
            value: float = getattr(self, field)
            is_price = field in {"on_demand_price", "otherwise"}
            if not math.isfinite(value) or value < 0 or (is_price and value == 0):
                raise ValueError(
                    f"{field}: got {value:g}; allowed: {'more than 0' if is_price else '0 or more'}"
                )

    @property
    def data_per_start(self) -> float:
        """What the data of a start there costs, in on-demand hours: of each move, and of each restart."""
        return self.size_gib * self.price_per_gib / self.on_demand_price

    @property
    def data_per_hour(self) -> float:
        """What the data of an hour of training there costs, in on-demand hours."""
        return (self.checkpoints_per_hour + self.rates.evictions_per_hour) * self.data_per_start

    @property
    def cost_per_useful_hour(self) -> float:
        """What an hour of training there costs with its data, in on-demand hours, beside the move."""
        return self.rates.cost_per_useful_hour + self.data_per_hour

    @property
    def break_even_hours(self) -> float:
        """How many hours a job has to train there until its move is paid for; infinite if an hour costs no less there."""
        saved = self.otherwise - self.cost_per_useful_hour
        return self.data_per_start / saved if saved > 0 else math.inf


def remote_report(tier: RemoteTier) -> str:
    """What data adds to a tier in another region, and from how many hours there the tier pays."""
    hours = tier.break_even_hours
    pays = (
        "never: an hour of training there costs no less than below"
        if math.isinf(hours)
        else f"from {hours:.1f} h of training there"
    )
    data = f"{tier.data_per_start:.2f} on-demand hours of data: {tier.size_gib:g} GiB at {tier.price_per_gib:g} USD"
    hour = f"{tier.cost_per_useful_hour:.2f} on-demand hours there, {tier.data_per_hour:.2f} of them for data"
    return "\n".join(
        [
            f"a move costs      {data}",
            f"an hour costs     {hour}, instead of {tier.otherwise:.2f} below",
            f"pays              {pays}",
        ]
    )


def default_price(home: str) -> float:
    """The most that clouds charge for a GiB between a home on this cloud and a cluster of another region or cloud, in USD."""
    transfers = price_facts()["transfers"]
    return max(transfers[each]["high"] for each in _WAYS[home])


def price_source() -> str:
    """What the defaults are the prices of, for the help."""
    listed = ", ".join(f"{default_price(home):g} on {home}" for home in HOMES)
    return f"the most that is charged in the United States, on AWS between regions and otherwise over the internet: {listed}"
