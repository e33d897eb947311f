"""The table of Azure's machines out of its price list. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Final

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.machine_table.azure_sizes import shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.simulator.tools.machine_table.azure_sizes import Shape

COLUMNS: Final = ("name", "arch", "vcpus", "memoryMiB", "gpus", "accelerator", "hourlyPrice", "regions")

#: The region whose prices a machine stands with; one that is not sold there has its lowest price elsewhere.
PRICED: Final = "eastus"


@dataclass(frozen=True, kw_only=True)
class AzureMarket:
    """What is sold where: on-demand prices in USD an hour by region and VM size, and the zones of regions.

    `drivers` are the VM sizes, in small letters, for whose GPUs AKS has drivers.
    """

    prices: Mapping[str, Mapping[str, float]]
    zones: Mapping[str, str]
    drivers: frozenset[str]


def azure_machine_table(market: AzureMarket) -> str:
    """The table's text: one line for a machine that can be a node here. Each region stands as one character.

    Raises RehearsalError where there are more regions than characters.
    """
    regions = sorted(market.prices)
    characters = ascii_letters + digits
    if len(regions) > len(characters):
        raise RehearsalError(
            f"{len(regions)} regions have no character each: let azure_table.py spell them with two"
        )
    letters = dict(zip(characters, regions, strict=False))
    sold = sorted({name for prices in market.prices.values() for name in prices})
    shapes = {name: shape for name in sold if (shape := shape_of(name)) and _has_drivers(name, shape, market)}
    lines = [_row(name, shape, market, letters) for name, shape in shapes.items()]
    return "\n".join(
        [
            "{",
            f'"columns": {json.dumps(COLUMNS)},',
            f'"regions": {json.dumps(letters)},',
            f'"zones": {json.dumps({region: market.zones.get(region, "") for region in regions})},',
            '"machines": [',
            ",\n".join(lines),
            "]",
            "}",
            "",
        ]
    )


def _row(name: str, shape: Shape, market: AzureMarket, letters: Mapping[str, str]) -> str:
    prices = {region: known[name] for region, known in market.prices.items() if name in known}
    cells = [
        name,
        shape.arch,
        shape.vcpus,
        shape.memory_mib,
        shape.gpus,
        shape.accelerator,
        prices.get(PRICED, min(prices.values())),
        "".join(letter for letter, region in letters.items() if region in prices),
    ]
    return json.dumps(cells, separators=(",", ":"))


def _has_drivers(name: str, shape: Shape, market: AzureMarket) -> bool:
    return not shape.gpus or name.lower() in market.drivers
