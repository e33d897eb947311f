"""The machine table of Azure, from the names of VM sizes and the data of Karpenter's Azure provider.

No package contains the responses of the Azure API; its documentation defines names and sizes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Final, cast

import yaml

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.tools.machine_table.modules import (
    letters_of,
    pinned_module,
    prices_by_region,
    render,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pulumi_holdfast.ladder.json import Json, JsonValue
    from pulumi_holdfast.ladder.machines import Architecture

_MIB_IN_GIB: Final = 1024

#: The smallest size that AKS supports.
_FEWEST_VCPUS: Final = 2

# D4ads_v5: family, vCPUs, options and version. `a` AMD, `d` local disk, `l` less and `m` more memory, `n` more
# network, `p` Arm, `s` premium disks, without which the disk of a node is slow. Sizes whose vCPUs are constrained
# (E16-4ds_v5) and whole hosts (`i`) are other names.
_NAME: Final = re.compile(r"Standard_(?P<family>[DEF])(?P<vcpus>\d+)(?P<adds>[adlmnps]*)_v(?P<version>\d+)")

#: The first generation of F has one ratio, with the least memory.
_FIRST_F: Final = 2

# Larger sizes of E have different amounts below 8 GiB per vCPU; they are omitted.
_MOST_VCPUS_OF_E: Final = 48
_MOST_VCPUS_OF_E_ON_ARM: Final = 20

# vCPUs, GiB, GPUs, kind. AKS has drivers for all of them. Fractional GPUs are omitted, because Kubernetes counts whole
# GPUs, and retired sizes.
_ACCELERATED: Final[Mapping[str, tuple[int, int, int, str]]] = {
    "Standard_NC4as_T4_v3": (4, 28, 1, "t4"),
    "Standard_NC8as_T4_v3": (8, 56, 1, "t4"),
    "Standard_NC16as_T4_v3": (16, 110, 1, "t4"),
    "Standard_NC64as_T4_v3": (64, 440, 4, "t4"),
    "Standard_NV36ads_A10_v5": (36, 440, 1, "a10"),
    "Standard_NV36adms_A10_v5": (36, 880, 1, "a10"),
    "Standard_NV72ads_A10_v5": (72, 880, 2, "a10"),
    "Standard_NC24ads_A100_v4": (24, 220, 1, "a100"),
    "Standard_NC48ads_A100_v4": (48, 440, 2, "a100"),
    "Standard_NC96ads_A100_v4": (96, 880, 4, "a100"),
    "Standard_ND96asr_v4": (96, 900, 8, "a100"),
    "Standard_ND96amsr_A100_v4": (96, 1900, 8, "a100"),
    "Standard_NC40ads_H100_v5": (40, 320, 1, "h100"),
    "Standard_NC80adis_H100_v5": (80, 640, 2, "h100"),
    "Standard_ND96isr_H100_v5": (96, 1900, 8, "h100"),
    "Standard_ND96isr_H200_v5": (96, 1850, 8, "h200"),
}


@dataclass(frozen=True, kw_only=True)
class VmSize:
    """The resources of a VM size; memory in MiB."""

    arch: Architecture
    vcpus: int
    memory_mib: int
    gpus: int = 0
    accelerator: str | None = None


def size_of(name: str) -> VmSize | None:
    """Return the resources of a VM size by its name; None for a size that cannot be a node."""
    if name in _ACCELERATED:
        vcpus, gib, gpus, accelerator = _ACCELERATED[name]
        return VmSize(
            arch="amd64", vcpus=vcpus, memory_mib=gib * _MIB_IN_GIB, gpus=gpus, accelerator=accelerator
        )
    found = _NAME.fullmatch(name)
    if found is None or "s" not in found["adds"]:
        return None
    vcpus, on_arm = int(found["vcpus"]), "p" in found["adds"]
    most = _MOST_VCPUS_OF_E_ON_ARM if on_arm else _MOST_VCPUS_OF_E
    if vcpus < _FEWEST_VCPUS or (found["family"] == "E" and vcpus > most):
        return None
    gib = _gib_per_vcpu(found["family"], found["adds"], int(found["version"]))
    return VmSize(arch="arm64" if on_arm else "amd64", vcpus=vcpus, memory_mib=vcpus * gib * _MIB_IN_GIB)


def _gib_per_vcpu(family: str, adds: str, version: int) -> int:
    if family == "E" or "m" in adds:
        return 8
    return 2 if "l" in adds or (family == "F" and version == _FIRST_F) else 4


KARPENTER: Final = "github.com/Azure/karpenter-provider-azure"

_REGION: Final = re.compile(
    r'^\tinitialOnDemandPrices\["(?P<region>[a-z0-9]+)"\] = map\[string\]float64\{(?P<body>.*?)^\t\}',
    re.MULTILINE | re.DOTALL,
)
_PRICE: Final = re.compile(r'"(?P<name>\w[\w-]*)":\s+(?P<price>[0-9.]+)')


def read_azure_sources(project_root: Path) -> AzureMarket:
    """Return the offerings of Azure. Raises RehearsalError if the module of Karpenter or its data is missing."""
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
    """Return the prices by region and VM size in the price list of Karpenter."""
    return prices_by_region(source, _REGION, _PRICE)


def zones_of(source: str) -> Mapping[str, str]:
    """Return the zones of each region, one character each, from the locations of a subscription."""
    locations = cast("Sequence[Json]", json.loads(source))
    return {str(location["name"]): _zones(location) for location in locations}


def sizes_with_drivers(source: str) -> frozenset[str]:
    """Return the VM sizes in lower case with GPUs that have AKS drivers (NVIDIA)."""
    listed = cast("Mapping[str, Json]", yaml.safe_load(source))
    return frozenset(name for name, known in listed.items() if known["gpu"] == "nvidia")


def _zones(location: Json) -> str:
    mappings = cast("Sequence[Json]", location.get("availabilityZoneMappings") or ())
    return "".join(sorted(str(mapping["logicalZone"]) for mapping in mappings))


COLUMNS: Final = ("name", "arch", "vcpus", "memoryMiB", "gpus", "accelerator", "hourlyPrice", "regions")

#: The table has the prices of this region; for a machine that is not offered there, the lowest price of any region.
PRICED: Final = "eastus"


@dataclass(frozen=True, kw_only=True)
class AzureMarket:
    """Offerings: hourly on-demand prices in USD by region and VM size, and the zones of regions.

    `drivers` are the VM sizes in lower case with GPUs that have AKS drivers.
    """

    prices: Mapping[str, Mapping[str, float]]
    zones: Mapping[str, str]
    drivers: frozenset[str]


def azure_machine_table(market: AzureMarket) -> str:
    """Return the text of the table: one line for each machine that can be a node. One character stands for a region.

    Raises RehearsalError if there are more regions than characters.
    """
    letters = letters_of(market.prices, ascii_letters + digits)
    sold = sorted({name for prices in market.prices.values() for name in prices})
    sizes = {name: size for name in sold if (size := size_of(name)) and _has_drivers(name, size, market)}
    zones = {region: market.zones.get(region, "") for region in letters.values()}
    rows = (_row(name, size, market, letters) for name, size in sizes.items())
    return render(COLUMNS, letters, zones, rows)


def _row(name: str, size: VmSize, market: AzureMarket, letters: Mapping[str, str]) -> list[JsonValue]:
    prices = {region: known[name] for region, known in market.prices.items() if name in known}
    return [
        name,
        size.arch,
        size.vcpus,
        size.memory_mib,
        size.gpus,
        size.accelerator,
        prices.get(PRICED, min(prices.values())),
        "".join(letter for letter, region in letters.items() if region in prices),
    ]


def _has_drivers(name: str, size: VmSize, market: AzureMarket) -> bool:
    return not size.gpus or name.lower() in market.drivers
