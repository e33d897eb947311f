"""Published prices in USD an hour as ranges, from the machine tables, published charges and recorded spot prices.

Calls no cloud.

The only source of prices of the cost estimate; a running controller reads those of the moment from Karpenter
(`components/pulumi_holdfast/controller/loop/pools.py`). `prices.json` beside this module has each published charge with its source and
date.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, reduce
from importlib.resources import files
from typing import TYPE_CHECKING, NotRequired, TypedDict, cast

from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulumi_holdfast.ladder.machines import Machine


@dataclass(frozen=True, kw_only=True)
class CostRange:
    """A cost in USD an hour, from `low` to `high`; both are None if nothing of it has a known price.

    `unknown` names what has no known price. It is in neither bound: it counts neither as free nor as the most expensive.
    """

    low: float | None = None
    high: float | None = None
    unknown: frozenset[str] = frozenset()

    @property
    def is_bounded(self) -> bool:
        """Whether all of it has a known price."""
        return not self.unknown

    def __add__(self, other: CostRange) -> CostRange:
        """The cost of both."""
        return CostRange(
            low=_sum(self.low, other.low),
            high=_sum(self.high, other.high),
            unknown=self.unknown | other.unknown,
        )

    def times(self, least: float, most: float | None = None) -> CostRange:
        """The cost of `least` to `most` of it; of `least` if there is no `most`."""
        return CostRange(
            low=None if self.low is None else self.low * least,
            high=None if self.high is None else self.high * (least if most is None else most),
            unknown=self.unknown,
        )

    def or_else(self, other: CostRange) -> CostRange:
        """The cost of one of the two, whichever it will be."""
        lows = [each for each in (self.low, other.low) if each is not None]
        highs = [each for each in (self.high, other.high) if each is not None]
        return CostRange(
            low=min(lows, default=None), high=max(highs, default=None), unknown=self.unknown | other.unknown
        )

    def __str__(self) -> str:
        """The text in reports: `1.20`, `1.20 to 4.56`, `unknown`, `1.20 to 4.56 + unknown`."""
        if self.low is None or self.high is None:
            return "unknown"
        low, high = f"{self.low:.2f}", f"{self.high:.2f}"
        known = low if low == high else f"{low} to {high}"
        return known if self.is_bounded else f"{known} + unknown"


#: The cost of nothing.
FREE = CostRange(low=0.0, high=0.0)


def exactly(price: float) -> CostRange:
    """A known price."""
    return CostRange(low=price, high=price)


def unpriced(name: str) -> CostRange:
    """A cost without a known price."""
    return CostRange(unknown=frozenset({name}))


def any_of(costs: Iterable[CostRange]) -> CostRange:
    """The cost of one of several, whichever it will be; of nothing if there are none."""
    listed = list(costs)
    return reduce(CostRange.or_else, listed) if listed else FREE


def total(costs: Iterable[CostRange]) -> CostRange:
    """The cost of all together; of nothing if there are none."""
    listed = list(costs)
    return reduce(CostRange.__add__, listed) if listed else FREE


def _sum(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other


class _Table(TypedDict):
    region: str
    source: str


class _Share(TypedDict):
    share: float
    source: str
    date: str


class _Charge(TypedDict):
    low: float
    high: float
    source: str
    date: str
    also: NotRequired[str]


class PriceFacts(TypedDict):
    """`prices.json`, which is written by hand from what was published.

    `machines`: the region whose list prices a machine table has. `leastSpotShare`: the least part of its list price that a spot
    machine costs; the most is the list price. `charges`: what runs without a job, USD an hour in the same region, of file systems for a TiB; a credit is below 0.
    `transfers`: what a GiB of data costs from there, in USD.
    `date` is that of the source's text, or the day of reading a text without one. `also` is a second source with the same price.
    """

    machines: Mapping[str, _Table]
    leastSpotShare: Mapping[str, _Share]
    charges: Mapping[str, _Charge]
    transfers: Mapping[str, _Charge]


@cache
def price_facts() -> PriceFacts:
    """The published prices that no machine table has."""
    return cast(
        "PriceFacts",
        json.loads(files("pulumi_holdfast.ladder").joinpath("prices.json").read_text(encoding="utf-8")),
    )


def charge(name: str) -> CostRange:
    """The price of a charge without jobs, such as `aws-nat`; unknown if it is not in the table."""
    found = price_facts()["charges"].get(name)
    return unpriced(name) if found is None else CostRange(low=found["low"], high=found["high"])


def price_region(cloud: str) -> str:
    """The region whose list prices the machine table of a cloud has."""
    return price_facts()["machines"][cloud]["region"]


def least_spot_share(cloud: str) -> float:
    """The least part of its list price that a spot machine of a cloud costs."""
    return price_facts()["leastSpotShare"][cloud]["share"]


def machine_price(
    machine: Machine, capacity: CapacityType, cloud: str, spot: Mapping[str, CostRange]
) -> CostRange:
    """The price of a machine of a capacity type; `spot` has recorded spot prices by machine type.

    Spot without a recorded price costs between the least published share of the list price and the list price. A reservation
    has a price of its own, which no table has.
    """
    if capacity is CapacityType.SPOT and machine.name in spot:
        return spot[machine.name]
    if machine.list_price is None or capacity is CapacityType.RESERVED:
        return unpriced(machine.name)
    if capacity is CapacityType.SPOT:
        return CostRange(low=machine.list_price * least_spot_share(cloud), high=machine.list_price)
    return exactly(machine.list_price)


def never_below(max_price: float, types: Iterable[str], capacities: Iterable[str]) -> str | None:
    """Why a tier on AWS with this `maxPrice` never has capacity: each machine type of its pool costs more at any known price.

    None if one may cost less, or if a price is not known. On other clouds the controller knows only the price that a tier
    declares, in a currency of its author's choice.
    """
    table, least = machine_catalogue("aws"), dict[str, float]()
    for name in types:
        for capacity in capacities:
            if name not in table or capacity not in set(CapacityType):
                return None
            cost = machine_price(table[name], CapacityType(capacity), "aws", {})
            if cost.low is None or cost.low <= max_price:
                return None
            least[name] = min(cost.low, least.get(name, cost.low))
    if not least:
        return None
    name = min(least, key=lambda each: least[each])
    return (
        f"`maxPrice: {max_price:g}` is below what each of its machine types costs ({name} from {least[name]:.2f} USD an hour, by "
        f"prices in {price_region('aws')}), so the tier never has capacity and every job passes it. Raise maxPrice, or remove "
        "the tier."
    )
