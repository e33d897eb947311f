"""The rules of ComputeClasses: what one may hold, and which ladders may go through it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.infra.config.pools_and_ladders import NAMESPACES, POOLS
from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.gcp.config.pool import GcpPool
    from holdfast.scheduling.json import Json, JsonValue


def class_problems(document: Json, pools: Mapping[int, GcpPool]) -> Iterator[Problem]:
    """Everything that is wrong with the classes that the pools of a document name."""
    yield from _mixed_capacity(pools)
    first_of_name: dict[str, GcpPool] = {}
    for pool in pools.values():
        first_of_name.setdefault(pool.name, pool)
    namespaces = document.get("namespaces")
    for index, entry in enumerate(namespaces if isinstance(namespaces, list | tuple) else ()):
        tiers = [first_of_name[name] for name in _pools_of(entry) if name in first_of_name]
        at = f"{NAMESPACES}[{index}].ladder"
        yield from _mixed_ladder(tiers, at)
        yield from _repeated_class(tiers, at)


def _mixed_capacity(pools: Mapping[int, GcpPool]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, pool in pools.items():
        if pool.compute_class is None:
            continue
        other = pools[first.setdefault(pool.compute_class, index)]
        if other.capacity is not pool.capacity:
            yield Problem(
                field=f"{POOLS}[{index}].computeClass",
                value=f"{shown(pool.compute_class)} on a pool that is {pool.capacity.value}, while {other.name} of the "
                f"same class is {other.capacity.value}",
                allowed="pools of one capacity type in a class: GKE goes on to the next at once and for each node by "
                "itself, and a job's pods would be on both",
                fix="Write a class for each capacity type, and a tier for each.",
            )


def _mixed_ladder(tiers: list[GcpPool], field: str) -> Iterator[Problem]:
    classes = [pool.name for pool in tiers if pool.compute_class is not None]
    others = [pool.name for pool in tiers if pool.compute_class is None]
    if classes and others:
        yield Problem(
            field=field,
            value=f"{', '.join(classes)} with computeClass, and {', '.join(others)} without",
            allowed="pools that all have a class, or none: a class is selected by cloud.google.com/compute-class, "
            "which GKE refuses beside its labels for spot, and a job that moves on keeps the selectors it had",
            fix="Add computeClass to each of them, or to none.",
        )


def _repeated_class(tiers: list[GcpPool], field: str) -> Iterator[Problem]:
    by_class: dict[str, list[str]] = {}
    for pool in tiers:
        if pool.compute_class is not None:
            by_class.setdefault(pool.compute_class, []).append(pool.name)
    for name, members in by_class.items():
        if len(set(members)) > 1:
            yield Problem(
                field=field,
                value=f"{', '.join(members)}, which are all of the class {shown(name)}",
                allowed="one pool of a class: whoever selects the class gets any of them, and no tier is left",
                fix="Keep the first of them, or give each a class of its own.",
            )


def _pools_of(namespace: JsonValue) -> Iterator[str]:
    ladder = namespace.get("ladder") if isinstance(namespace, Mapping) else None
    for tier in ladder if isinstance(ladder, list | tuple) else ():
        name = tier.get("pool") if isinstance(tier, Mapping) else None
        if isinstance(name, str):
            yield name
