"""Reads recorded spot prices: a saved response of `aws ec2 describe-spot-price-history` or Azure's retail price list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.prices import CostRange, any_of, exactly

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pulumi_holdfast.ladder.json import JsonValue

_ALLOWED: Final = (
    "the JSON that `aws ec2 describe-spot-price-history --product-descriptions Linux/UNIX` prints, or that "
    "https://prices.azure.com/api/retail/prices answers"
)


def read_spot_prices(path: Path) -> Mapping[str, CostRange]:
    """The lowest and the highest recorded price of each machine type. Raises ConfigError for a file that has none."""
    try:
        document = cast("JsonValue", json.loads(path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise _unreadable(path, " ".join(str(error).split())) from None
    found = spot_prices_of([document])
    if not found:
        raise _unreadable(path, "it has no spot price of Linux machines")
    return found


def spot_prices_of(answers: Iterable[JsonValue]) -> Mapping[str, CostRange]:
    """The lowest and the highest price of each machine type in the clouds' answers."""
    found: dict[str, list[float]] = {}
    for answer in answers:
        for machine, price in _records(answer):
            found.setdefault(machine, []).append(price)
    return {machine: any_of(map(exactly, prices)) for machine, prices in found.items()}


def _records(document: JsonValue) -> Iterator[tuple[str, float]]:
    if not isinstance(document, dict):
        return
    for entry in _list(document.get("SpotPriceHistory")):
        machine, price = entry.get("InstanceType"), entry.get("SpotPrice")
        if (
            isinstance(machine, str)
            and isinstance(price, str)
            and "Linux" in str(entry.get("ProductDescription"))
        ):
            yield from _priced(machine, price)
    for entry in _list(document.get("Items")):
        machine, price = entry.get("armSkuName"), entry.get("retailPrice")
        is_spot = str(entry.get("skuName")).endswith(" Spot")
        if isinstance(machine, str) and is_spot and "Windows" not in str(entry.get("productName")):
            yield from _priced(machine, price)


def _priced(machine: str, price: JsonValue) -> Iterator[tuple[str, float]]:
    try:
        number = float(cast("str | float", price))
    except (TypeError, ValueError):
        return
    if number > 0:
        yield machine, number


def _list(value: JsonValue) -> Iterator[Mapping[str, JsonValue]]:
    return (entry for entry in value if isinstance(entry, dict)) if isinstance(value, list) else iter(())


def _unreadable(path: Path, reason: str) -> ConfigError:
    return ConfigError.of(
        field="--spot-prices",
        value=f"{path}: {reason}",
        allowed=_ALLOWED,
        fix="Save one of these answers to the file, or leave the option out.",
    )
