"""The rules of pools and of the namespaces whose ladders name them, for every cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from holdfast.infra.config import rules
from holdfast.infra.config.parts import read_parts
from holdfast.infra.config.platform import NamespaceSection
from holdfast.infra.config.reading import PLATFORM
from holdfast.infra.config.section import Section
from holdfast.scheduling.ladder import timing_problems
from holdfast.scheduling.quotas import quota_problems
from holdfast.scheduling.shapes import shape_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from holdfast.infra.config.parts import Parts
    from holdfast.scheduling.errors import Problem
    from holdfast.scheduling.json import Json
    from holdfast.scheduling.pools import Pool

POOLS = f"{PLATFORM}.pools"
NAMESPACES = f"{PLATFORM}.namespaces"

S = TypeVar("S", bound=Section)


def pool_and_ladder_problems(
    document: Json,
    pools: Parts[S],
    *,
    problems_of: Callable[[S, str], Iterator[Problem]],
    as_pool: Callable[[S], Pool],
    a_default_pool: str = rules.A_DEFAULT_POOL,
) -> Iterator[Problem]:
    """Everything that is wrong with a document's pools, one by one and together, and with its ladders.

    `problems_of` yields what is wrong with a single pool at a path; `as_pool` turns one with which nothing is wrong
    into what the rules know of it. `a_default_pool` is how one that may be the default is written.
    """
    namespaces = read_parts(NamespaceSection, document.get("namespaces"))
    yield from rules.repeated_names(pools.names, "pool", POOLS)
    unclear: set[int] = set()
    for index, pool in pools.items.items():
        wrong = list(problems_of(pool, f"{POOLS}[{index}]"))
        yield from wrong
        # What a pool is depends on its machines: while these are wrong, nothing else is said about it.
        unclear |= {index} if wrong else set()
    clear = pools.without(unclear)
    known = {index: as_pool(pool) for index, pool in clear.items.items()}
    yield from rules.default_pool(known, all_were_read=clear.complete, example=a_default_pool, at=POOLS)
    yield from rules.repeated_names(namespaces.names, "training namespace", NAMESPACES)
    yield from rules.reserved_names(namespaces.names, NAMESPACES)
    first_of_name: dict[str, Pool] = {}
    for pool in known.values():
        first_of_name.setdefault(pool.name, pool)
    for index, namespace in namespaces.items.items():
        yield from _namespace_problems(namespace, first_of_name, f"{NAMESPACES}[{index}]")
    yield from rules.ladders(document.get("namespaces"), first_of_name, clear.may_hold, NAMESPACES)


def _namespace_problems(namespace: NamespaceSection, pools: Mapping[str, Pool], at: str) -> Iterator[Problem]:
    """What is wrong with a namespace beside its ladder."""
    shapes = namespace.as_shapes()
    on_gpus = any(pools[tier.pool].has_gpus for tier in namespace.ladder if tier.pool in pools)
    yield from timing_problems(namespace.as_ladder(), f"{at}.fallback")
    yield from rules.repeated_names(
        {place: shape.name for place, shape in enumerate(shapes)}, "shape of the namespace", f"{at}.shapes"
    )
    yield from shape_problems(shapes, f"{at}.shapes")
    yield from quota_problems(namespace.quota.as_asked(), shapes, f"{at}.quota", on_gpus=on_gpus)
