"""Converts Determined's resource pools to a stack's pools, and writes them as YAML. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import yaml

from pulumi_holdfast.cli.determined.parser import POOLS, ConvertedPool, MasterFile, Report, read_pool
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue

#: The default pool that is added if none of Determined's pools can be the default.
_DEFAULT_NAME: Final = "cpu"
_DEFAULT_TYPES: Final = ("m7i.xlarge", "m7a.xlarge", "m6i.xlarge")
_DEFAULT_NODES: Final = 20


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """A stack's pools, and notes about the conversion."""

    pools: tuple[ConvertedPool, ...]
    notes: tuple[str, ...]


def convert(file: MasterFile) -> Conversion:
    """Convert the pools of a master configuration; exactly one of them becomes the default.

    Raises ConfigError with a problem for each field without an equivalent.
    """
    report = Report()
    read = {index: read_pool(entry, f"{POOLS}[{index}]", report) for index, entry in enumerate(file.pools)}
    pools = {index: pool for index, pool in read.items() if pool is not None}
    report.problems.extend(_repeated(pools))
    if report.problems:
        raise ConfigError(report.problems)
    complete = _with_default(list(pools.values()), file.auxiliary_pool, report)
    return Conversion(pools=tuple(complete), notes=tuple(report.notes))


def _repeated(pools: Mapping[int, ConvertedPool]) -> list[Problem]:
    first: dict[str, int] = {}
    return [
        Problem(
            field=f"{POOLS}[{index}].pool_name",
            value=f'"{pool.source}", whose label "{pool.name}" is also that of {POOLS}[{first[pool.name]}]',
            allowed="names that differ in letters, digits and hyphens",
            fix="Rename one of the two.",
        )
        for index, pool in pools.items()
        if first.setdefault(pool.name, index) != index
    ]


def _with_default(
    pools: Sequence[ConvertedPool], auxiliary_pool: str | None, report: Report
) -> list[ConvertedPool]:
    """The pools with a default: the auxiliary pool if possible, otherwise the first possible one, or a new one."""
    fitting = [pool for pool in pools if pool.may_be_default]
    chosen = next((pool for pool in fitting if pool.source == auxiliary_pool), next(iter(fitting), None))
    if chosen is not None:
        report.notes.append(f"{chosen.name} is the default, for pods that name no pool")
        return [replace(pool, is_default=pool is chosen) for pool in pools]
    added = _default_pool({pool.name for pool in pools})
    report.notes.append(
        f"{added.name} is added: pods that name no pool need an on-demand pool without GPUs, and the list has none"
    )
    return [added, *pools]


def _default_pool(taken: set[str]) -> ConvertedPool:
    names = (_DEFAULT_NAME, *(f"{_DEFAULT_NAME}-{number}" for number in range(2, len(taken) + 2)))
    return ConvertedPool(
        name=next(name for name in names if name not in taken),
        source="",
        capacity=CapacityType.ON_DEMAND,
        machines=tuple(machine_catalogue("aws")[name] for name in _DEFAULT_TYPES),
        max_nodes=_DEFAULT_NODES,
        is_default=True,
    )


_ONE_LINE = 10_000


def as_yaml(conversion: Conversion) -> str:
    """The notes as comments, then `pools:` with a line for each pool."""
    entries = [
        yaml.safe_dump(
            dict(pool.as_entry()), default_flow_style=True, sort_keys=False, width=_ONE_LINE
        ).strip()
        for pool in conversion.pools
    ]
    lines = [f"# {note}." for note in conversion.notes] + ["pools:"] + [f"  - {entry}" for entry in entries]
    return "\n".join(lines) + "\n"
