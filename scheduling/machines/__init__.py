"""The machine catalogue: what each instance type offers, and what it costs.

The one source for configuration's checks, for GPU taints, for pool limits and for the instance types which the
simulated cloud sells. Prices are EC2's on-demand list prices for Linux in us-east-1, in USD an hour; `p5e.48xlarge`
is sold in Capacity Blocks only and stands with its block rate.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

#: The zones of the simulated cloud.
LOCAL_ZONES: Final = ("local-a", "local-b", "local-c")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """An instance type. Memory in MiB, price in USD an hour."""

    name: str
    vcpus: int
    memory_mib: int
    gpus: int
    hourly_price: float


@cache
def machine_catalogue(cloud: str) -> Mapping[str, Machine]:
    """All machines known on a cloud (`local`), by name."""
    entries = json.loads(files(__name__).joinpath(f"{cloud}.json").read_text())
    machines = [
        Machine(
            name=entry["name"],
            vcpus=entry["vcpus"],
            memory_mib=entry["memoryMiB"],
            gpus=entry["gpus"],
            hourly_price=entry["hourlyPrice"],
        )
        for entry in entries
    ]
    return MappingProxyType({machine.name: machine for machine in machines})
