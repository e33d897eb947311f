"""The tables beside this module, as they are written there."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TypeAlias, TypedDict, cast

from holdfast.scheduling.machines.machine import Architecture

# Name, architecture, vCPUs, memory in MiB, GPUs, accelerator, EFA interfaces, spot, price, letters of regions.
AwsRow: TypeAlias = tuple[str, Architecture, int, int, int, str | None, int, bool, float | None, str]


class AwsTable(TypedDict):
    """`aws.json`, which is generated: one row for a machine, one letter for a region."""

    columns: Sequence[str]
    regions: Mapping[str, str]
    zones: Mapping[str, str]
    machines: Sequence[AwsRow]


# Name, architecture, vCPUs, memory in MiB, GPUs, accelerator, price, characters of regions.
AzureRow: TypeAlias = tuple[str, Architecture, int, int, int, str | None, float, str]


class AzureTable(TypedDict):
    """`azure.json`, which is generated: one row for a machine, one character for a region and for each of its zones."""

    columns: Sequence[str]
    regions: Mapping[str, str]
    zones: Mapping[str, str]
    machines: Sequence[AzureRow]


# Name, architecture, USD an hour for a vCPU and for a GiB, memory in GiB by the number of vCPUs.
GcpSeries: TypeAlias = tuple[str, Architecture, float, float, Mapping[str, float]]

# Name, architecture, vCPUs, memory in GiB, GPUs, accelerator, local SSDs, how it is sold, price.
GcpAcceleratedRow: TypeAlias = tuple[
    str, Architecture, int, float, int, str, int, Sequence[str], float | None
]

# The disk its machines start from, and whether they can be placed close to each other.
GcpFamily: TypeAlias = tuple[str, bool]

# USD an hour for one, and the most vCPUs that a machine may have beside so many of them.
GcpAttachable: TypeAlias = tuple[float, Mapping[str, int]]


class GcpTable(TypedDict):
    """`gcp.json`, which is written by hand: one row for a series of machines, and for each that brings GPUs.

    A machine of a series is named after its vCPUs (`n2-standard-8`), a family by the first part of its machines' names.
    A region's zones are letters.
    """

    regions: Mapping[str, str]
    families: Mapping[str, GcpFamily]
    series: Sequence[GcpSeries]
    accelerated: Sequence[GcpAcceleratedRow]
    attachable: Mapping[str, GcpAttachable]


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
def azure_table() -> AzureTable:
    """Azure's VM sizes, with the regions that sell them."""
    return cast("AzureTable", _read("azure.json"))


@cache
def gcp_table() -> GcpTable:
    """Compute Engine's machine types for nodes, and the zones of its regions."""
    return cast("GcpTable", _read("gcp.json"))


@cache
def local_table() -> Sequence[LocalRow]:
    """What the simulated cloud sells."""
    return cast("Sequence[LocalRow]", _read("local.json"))


def _read(name: str) -> object:
    return json.loads(files("holdfast.scheduling.machines").joinpath(name).read_text(encoding="utf-8"))
