"""The machine table of AWS, from the data files of moto and the price lists of Karpenter."""

from __future__ import annotations

import gzip
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from string import ascii_letters
from typing import TYPE_CHECKING, Final, cast

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.tools.machine_table.modules import (
    letters_of,
    pinned_module,
    prices_by_region,
    render,
    run,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_holdfast.ladder.json import Json, JsonValue

# renovate: datasource=pypi depName=moto
MOTO: Final = "5.2.5"

KARPENTER: Final = "github.com/aws/karpenter-provider-aws"

#: The table has the prices of this region.
PRICED: Final = "us-east-1"

# Only the package without dependencies: only its data files are read.
_INSTALL: Final = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps")

_OFFERINGS: Final = "instance_type_offerings"
_REGION: Final = re.compile(r'^\t"(?P<region>[a-z0-9-]+)": \{(?P<body>.*?)^\t\},', re.MULTILINE | re.DOTALL)
_PRICE: Final = re.compile(r'"(?P<name>[a-z0-9-]+\.[a-z0-9-]+)": (?P<price>[0-9.]+)')


def read_sources(project_root: Path) -> tuple[Sequence[Json], AwsMarket]:
    """Return the instance types and where they are offered.

    Downloads the wheel of moto and the pinned module of Karpenter. Raises RehearsalError if a download
    fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        run([*_INSTALL, "--target", folder, f"moto=={MOTO}"], project_root)
        answers = Path(folder) / "moto" / "ec2" / "resources"
        described = cast("Mapping[str, Json]", _read(answers / "instance_types.json.gz"))
        types = _offered(answers / _OFFERINGS / "region", "InstanceType")
        zones = _offered(answers / _OFFERINGS / "availability-zone", "Location")
    priced = _priced(project_root)
    # moto has no data of China and GovCloud, which need separate accounts: a type with a price is offered there.
    elsewhere = {region: frozenset(prices) for region, prices in priced.items() if region not in types}
    return list(described.values()), AwsMarket(
        types={**types, **elsewhere}, zones=zones, prices=priced[PRICED]
    )


def prices(source: str) -> Mapping[str, Mapping[str, float]]:
    """Return the prices by region and type in a price list of Karpenter."""
    return prices_by_region(source, _REGION, _PRICE)


def _priced(project_root: Path) -> Mapping[str, Mapping[str, float]]:
    module = pinned_module(project_root, KARPENTER)
    lists = sorted((module / "pkg" / "providers" / "pricing").glob("zz_generated.*.go"))
    found = {region: known for path in lists for region, known in prices(path.read_text()).items()}
    if not found.get(PRICED):
        raise RehearsalError(f"{module} has no prices of {PRICED}: look where its price lists went")
    return found


def _offered(folder: Path, key: str) -> Mapping[str, frozenset[str]]:
    return {
        path.name.removesuffix(".json.gz"): frozenset(
            str(offer[key]) for offer in cast("Sequence[Json]", _read(path))
        )
        for path in folder.glob("*.json.gz")
    }


def _read(path: Path) -> object:
    try:
        return json.loads(gzip.decompress(path.read_bytes()))
    except OSError as error:
        raise RehearsalError(f"moto {MOTO} has no {path.name}: look where its data went") from error


COLUMNS: Final = (
    "name",
    "arch",
    "vcpus",
    "memoryMiB",
    "gpus",
    "accelerator",
    "efaInterfaces",
    "spot",
    "gpuMemoryMiB",
    "localNvmeGB",
    "maxPods",
    "processor",
    "hypervisor",
    "hourlyPrice",
    "regions",
)

#: The architecture names of Kubernetes; types of other architectures (macOS) cannot be nodes.
_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}

# Accelerators that need a special driver, device plugin and image, which nodes do not get.
_FOREIGN: Final = ("FpgaInfo", "InferenceAcceleratorInfo", "MediaAcceleratorInfo", "NeuronInfo")
# Of some types EC2 does not describe the accelerators.
_FOREIGN_FAMILIES: Final = ("inf", "trn")


@dataclass(frozen=True, kw_only=True)
class AwsMarket:
    """Offerings: instance types and zones by region, and hourly on-demand prices in USD by type."""

    types: Mapping[str, frozenset[str]]
    zones: Mapping[str, frozenset[str]]
    prices: Mapping[str, float]


def machine_table(described: Sequence[Json], market: AwsMarket) -> str:
    """Return the text of the table: one line for each machine that can be a node.

    `described` are the instance types of EC2 (DescribeInstanceTypes). One letter stands for a region.
    Raises RehearsalError if there are more regions than letters.
    """
    letters = letters_of(market.types, ascii_letters)
    usable = sorted(filter(_can_be_a_node, described), key=_name)
    zones = {
        region: "".join(sorted(zone.removeprefix(region) for zone in market.zones.get(region, ())))
        for region in letters.values()
    }
    return render(COLUMNS, letters, zones, (_row(machine, market, letters) for machine in usable))


def _row(machine: Json, market: AwsMarket, letters: Mapping[str, str]) -> list[JsonValue]:
    name = _name(machine)
    gpu = _gpu(machine)
    return [
        name,
        _architecture(machine),
        _number(machine, "VCpuInfo", "DefaultVCpus"),
        _number(machine, "MemoryInfo", "SizeInMiB"),
        _number(gpu, "Count"),
        str(gpu["Name"]).lower().replace(" ", "-") if gpu else None,
        _number(machine, "NetworkInfo", "EfaInfo", "MaximumEfaInterfaces"),
        "spot" in cast("Sequence[str]", machine["SupportedUsageClasses"]),
        _number(gpu, "MemoryInfo", "SizeInMiB"),
        _local_nvme(machine),
        _max_pods(machine),
        str(_mapping(machine, "ProcessorInfo").get("Manufacturer", "")).lower(),
        str(machine.get("Hypervisor", "")),
        market.prices.get(name),
        "".join(letter for letter, region in letters.items() if name in market.types[region]),
    ]


def _can_be_a_node(machine: Json) -> bool:
    # Types before Nitro are generations that EC2 has retired.
    lives = machine["CurrentGeneration"] is True or machine.get("Hypervisor") == "nitro"
    # Karpenter counts no fractional GPU, and the pinned image does not have its driver.
    whole = not machine.get("GpuInfo") or _number(_gpu(machine), "Count") > 0
    foreign = any(map(machine.get, _FOREIGN)) or _name(machine).startswith(_FOREIGN_FAMILIES)
    return lives and whole and _architecture(machine) is not None and not foreign


def _architecture(machine: Json) -> str | None:
    offered = cast("Sequence[str]", _mapping(machine, "ProcessorInfo")["SupportedArchitectures"])
    return next((_ARCHITECTURES[name] for name in offered if name in _ARCHITECTURES), None)


def _gpu(machine: Json) -> Json:
    gpus = cast("Sequence[Json]", _mapping(machine, "GpuInfo").get("Gpus", ()))
    return gpus[0] if gpus else {}


def _local_nvme(machine: Json) -> int:
    """Return the size of its local disks in GB, as Karpenter's label has it; 0 for disks without NVMe."""
    storage = _mapping(machine, "InstanceStorageInfo")
    return 0 if storage.get("NvmeSupport") == "unsupported" else _number(storage, "TotalSizeInGB")


def _max_pods(machine: Json) -> int:
    """Return the pods that get addresses of its default network card, as Karpenter and the VPC CNI count them."""
    network = _mapping(machine, "NetworkInfo")
    cards = cast("Sequence[Json]", network.get("NetworkCards", ()))
    if not cards:
        return 0
    interfaces = _number(cards[_number(network, "DefaultNetworkCardIndex")], "MaximumNetworkInterfaces")
    return interfaces * (_number(network, "Ipv4AddressesPerInterface") - 1) + 2


def _name(machine: Json) -> str:
    return str(machine["InstanceType"])


def _number(machine: Json, *path: str) -> int:
    found = _mapping(machine, *path[:-1]).get(path[-1], 0)
    return int(cast("int", found))


def _mapping(machine: Json, *path: str) -> Json:
    for step in path:
        machine = cast("Json", machine.get(step) or {})
    return machine
