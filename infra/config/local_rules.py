"""The rules across fields of a local stack."""

from collections.abc import Iterator

from infra import versions
from infra.config import rules
from infra.config.local import CATALOGUE, LocalPlatform, LocalPool
from infra.config.parts import read_parts
from infra.config.platform import NamespaceSection
from infra.config.reading import PLATFORM, read_section
from scheduling.errors import Problem
from scheduling.json import Json
from scheduling.machines import machine_catalogue

_POOLS = f"{PLATFORM}.pools"
_NAMESPACES = f"{PLATFORM}.namespaces"


def local_problems(document: Json) -> Iterator[Problem]:
    """Everything that is wrong across the fields of a local stack's document."""
    pools = read_parts(LocalPool, document.get("pools"))
    namespaces = read_parts(NamespaceSection, document.get("namespaces"))
    known = {index: pool.as_pool() for index, pool in pools.items.items()}
    yield from rules.kubernetes_version(document.get("cluster"), versions.KUBERNETES, f"{PLATFORM}.cluster")
    yield from rules.repeated_names(pools.names, "pool", _POOLS)
    for index, pool in pools.items.items():
        yield from rules.instance_types(
            pool.instance_types, machine_catalogue("local"), CATALOGUE, f"{_POOLS}[{index}].instanceTypes"
        )
    yield from rules.default_pool(known, all_were_read=len(known) == pools.count, at=_POOLS)
    yield from rules.repeated_names(namespaces.names, "training namespace", _NAMESPACES)
    yield from rules.reserved_names(namespaces.names, _NAMESPACES)
    yield from rules.ladders(
        document.get("namespaces"),
        {pool.name: pool for pool in known.values()},
        pools.unread_names,
        _NAMESPACES,
    )


def read_local_platform(document: Json) -> LocalPlatform:
    """Read a local stack's platform.

    Raises ConfigError with every problem.
    """
    return read_section(LocalPlatform, document, local_problems)
