"""The rules across fields of a local stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra import versions
from infra.config import rules
from infra.config.local import CATALOGUE, LocalPlatform, LocalPool
from infra.config.parts import read_parts
from infra.config.platform import NamespaceSection
from infra.config.reading import PLATFORM, read_section
from scheduling.machines import machine_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduling.errors import Problem
    from scheduling.json import Json
    from scheduling.pools import Pool

_POOLS = f"{PLATFORM}.pools"
_NAMESPACES = f"{PLATFORM}.namespaces"


def local_problems(document: Json) -> Iterator[Problem]:
    """Everything that is wrong across the fields of a local stack's document."""
    catalogue = machine_catalogue("local")
    pools = read_parts(LocalPool, document.get("pools"))
    namespaces = read_parts(NamespaceSection, document.get("namespaces"))
    yield from rules.kubernetes_version(document.get("cluster"), versions.KUBERNETES, f"{PLATFORM}.cluster")
    yield from rules.repeated_names(pools.names, "pool", _POOLS)
    unclear: set[int] = set()
    for index, pool in pools.items.items():
        wrong = list(
            rules.instance_types(
                pool.instance_types, catalogue, CATALOGUE, f"{_POOLS}[{index}].instanceTypes"
            )
        )
        yield from wrong
        # What a pool is depends on its machines: while these are wrong, nothing else is said about it.
        unclear |= {index} if wrong else set()
    clear = pools.without(unclear)
    known = {index: pool.as_pool() for index, pool in clear.items.items()}
    yield from rules.default_pool(known, all_were_read=clear.complete, at=_POOLS)
    yield from rules.repeated_names(namespaces.names, "training namespace", _NAMESPACES)
    yield from rules.reserved_names(namespaces.names, _NAMESPACES)
    first_of_name: dict[str, Pool] = {}
    for pool in known.values():
        first_of_name.setdefault(pool.name, pool)
    yield from rules.ladders(document.get("namespaces"), first_of_name, clear.may_hold, _NAMESPACES)


def read_local_platform(document: Json) -> LocalPlatform:
    """Read a local stack's platform.

    Raises ConfigError with every problem.
    """
    return read_section(LocalPlatform, document, local_problems)
