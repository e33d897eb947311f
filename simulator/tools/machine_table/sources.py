"""Where EC2's answers are recorded: moto's data files, and Karpenter's price lists."""

from __future__ import annotations

import gzip
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.machine_table.modules import pinned_module, run
from holdfast.simulator.tools.machine_table.table import Market

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.scheduling.json import Json

# renovate: datasource=pypi depName=moto
MOTO: Final = "5.2.5"

KARPENTER: Final = "github.com/aws/karpenter-provider-aws"

#: The region whose prices a machine stands with.
PRICED: Final = "us-east-1"

# The package alone: its data are read, nothing of it is run.
_INSTALL: Final = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps")

_OFFERINGS: Final = "instance_type_offerings"
_REGION: Final = re.compile(r'^\t"(?P<region>[a-z0-9-]+)": \{(?P<body>.*?)^\t\},', re.MULTILINE | re.DOTALL)
_PRICE: Final = re.compile(r'"(?P<name>[a-z0-9-]+\.[a-z0-9-]+)": (?P<price>[0-9.]+)')


def read_sources(project_root: Path) -> tuple[Sequence[Json], Market]:
    """What EC2 says of its types, and of what is sold where.

    Fetches moto's wheel, and Karpenter's module as tools/karpenter pins it. Raises RehearsalError where one of them
    cannot be had.
    """
    with tempfile.TemporaryDirectory() as folder:
        run([*_INSTALL, "--target", folder, f"moto=={MOTO}"], project_root)
        answers = Path(folder) / "moto" / "ec2" / "resources"
        described = cast("Mapping[str, Json]", _read(answers / "instance_types.json.gz"))
        types = _offered(answers / _OFFERINGS / "region", "InstanceType")
        zones = _offered(answers / _OFFERINGS / "availability-zone", "Location")
    priced = _priced(project_root)
    # China and GovCloud answer to accounts of their own, so moto has not asked them: what has a price there is sold.
    elsewhere = {region: frozenset(prices) for region, prices in priced.items() if region not in types}
    return list(described.values()), Market(types={**types, **elsewhere}, zones=zones, prices=priced[PRICED])


def prices(source: str) -> Mapping[str, Mapping[str, float]]:
    """The prices by region and type in one of Karpenter's price lists, which are Go."""
    return {
        region["region"]: {found["name"]: float(found["price"]) for found in _PRICE.finditer(region["body"])}
        for region in _REGION.finditer(source)
    }


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
