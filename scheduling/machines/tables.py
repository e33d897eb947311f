"""The tables beside this module, as they are written there."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TypeAlias, TypedDict, cast

from scheduling.machines.machine import Architecture

# Name, architecture, vCPUs, memory in MiB, GPUs, accelerator, EFA interfaces, spot, price, letters of regions.
AwsRow: TypeAlias = tuple[str, Architecture, int, int, int, str | None, int, bool, float | None, str]


class AwsTable(TypedDict):
    """`aws.json`, which is generated: one row for a machine, one letter for a region."""

    columns: Sequence[str]
    regions: Mapping[str, str]
    zones: Mapping[str, str]
    machines: Sequence[AwsRow]


class LocalRow(TypedDict):
    """An entry of `local.json`, which is written by hand."""

    name: str
    vcpus: int
    memoryMiB: int
    gpus: int
    accelerator: str | None
    hourlyPrice: float


@cache
def aws_table() -> AwsTable:
    """EC2's instance types, with the regions that sell them."""
    return cast("AwsTable", _read("aws.json"))


@cache
def local_table() -> Sequence[LocalRow]:
    """What the simulated cloud sells."""
    return cast("Sequence[LocalRow]", _read("local.json"))


def _read(name: str) -> object:
    return json.loads(files("scheduling.machines").joinpath(name).read_text(encoding="utf-8"))
