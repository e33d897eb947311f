"""Where Azure's prices, zones and GPU drivers are recorded: the data of Karpenter's Azure provider."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, cast

import yaml

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.machine_table.azure_table import PRICED, AzureMarket
from holdfast.simulator.tools.machine_table.modules import pinned_module

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from holdfast.scheduling.json import Json

KARPENTER: Final = "github.com/Azure/karpenter-provider-azure"

_REGION: Final = re.compile(
    r'^\tinitialOnDemandPrices\["(?P<region>[a-z0-9]+)"\] = map\[string\]float64\{(?P<body>.*?)^\t\}',
    re.MULTILINE | re.DOTALL,
)
_PRICE: Final = re.compile(r'"(?P<name>\w[\w-]*)":\s+(?P<price>[0-9.]+)')


def read_azure_sources(project_root: Path) -> AzureMarket:
    """What Azure sells. Raises RehearsalError where Karpenter's module cannot be had or has no such data any more."""
    packages = pinned_module(project_root, KARPENTER) / "pkg"
    try:
        priced = prices((packages / "providers" / "pricing" / "zz_generated.pricing.go").read_text())
        zones = zones_of((packages / "fake" / "locations.json").read_text())
        drivers = sizes_with_drivers((packages / "utils" / "supported-gpus.yaml").read_text())
    except OSError as error:
        raise RehearsalError(f"{KARPENTER} has no {error.filename}: look where its data went") from error
    if not priced.get(PRICED):
        raise RehearsalError(f"{KARPENTER} has no prices of {PRICED}: look where its price list went")
    return AzureMarket(prices=priced, zones=zones, drivers=drivers)


def prices(source: str) -> Mapping[str, Mapping[str, float]]:
    """The prices by region and VM size in Karpenter's price list, which is Go."""
    return {
        region["region"]: {found["name"]: float(found["price"]) for found in _PRICE.finditer(region["body"])}
        for region in _REGION.finditer(source)
    }


def zones_of(source: str) -> Mapping[str, str]:
    """The zones of each region, one character for each, in the answer of Azure to a subscription's locations."""
    locations = cast("Sequence[Json]", json.loads(source))
    return {str(location["name"]): _zones(location) for location in locations}


def sizes_with_drivers(source: str) -> frozenset[str]:
    """The VM sizes, in small letters, for whose GPUs AKS has drivers: NVIDIA's."""
    listed = cast("Mapping[str, Json]", yaml.safe_load(source))
    return frozenset(name for name, known in listed.items() if known["gpu"] == "nvidia")


def _zones(location: Json) -> str:
    mappings = cast("Sequence[Json]", location.get("availabilityZoneMappings") or ())
    return "".join(sorted(str(mapping["logicalZone"]) for mapping in mappings))
