"""Spot nodes repel pods that do not tolerate spot, no pool mixes spot with on-demand, and none buys in one market only.

A pod without a node selector runs on the cheapest machine, which is a spot one: a Ray head there takes its whole cluster
down with it. A pool of both capacity types buys spot first and has the same taints on all its nodes, so its on-demand
machines repel the very pods that fall back to them. A pool of one machine type in one zone is reclaimed, and sold out, as a
whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import ON_DEMAND, SPOT
from pulumi_holdfast.ladder.taints import REPELLING
from pulumi_holdfast.program.pools.all_pools import DeclaredPool, declared_pools
from pulumi_holdfast.program.resources import StackResource
from pulumi_holdfast.program.settings import Settings
from rule import Finding, Group, Level, Rule, RuleSeverity


def find_untainted(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the pools whose spot nodes repel no pods, and those that mix spot with on-demand."""
    return tuple(
        Finding(urn=pool.resource.urn, message=f"{pool.title} {problem}")
        for pool in declared_pools(resources)
        if pool.facts.is_decided
        for problem in _problems(pool)
    )


def _problems(pool: DeclaredPool) -> Iterator[str]:
    kinds, taints = pool.facts.capacity_types, pool.facts.taints
    if {SPOT, ON_DEMAND} <= kinds:
        yield (
            "makes spot and on-demand nodes with the same taints: either the on-demand ones repel jobs that fall back, or "
            "the spot ones accept any pod. Make a pool of each capacity type."
        )
    elif SPOT in kinds and taints is not UNKNOWN and not any(each.effect in REPELLING for each in taints):
        taint = pool.spot_taint
        yield (
            f"makes spot nodes that accept any pod. Add a taint, such as {taint.key}={taint.value}:{taint.effect}, under "
            f"`{pool.taints_path}`."
        )
    elif (
        SPOT not in kinds
        and taints is not UNKNOWN
        and any(_is_for_spot(each.key, each.value) for each in taints)
    ):
        yield f"makes on-demand nodes with a spot taint. Remove it from `{pool.taints_path}`."


def _is_for_spot(key: str, value: str) -> bool:
    return value == SPOT or key.endswith(("gke-spot", "scalesetpriority"))


def find_single_markets(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the spot pools of one machine type in one zone. One that names no zone has those of its network."""
    return tuple(
        Finding(
            urn=pool.resource.urn,
            message=f"{pool.title} buys spot in one market, {types[0]} in {next(iter(zones))}, which can sell out or be reclaimed "
            "with all its nodes. Add machine types or zones.",
        )
        for pool in declared_pools(resources)
        if SPOT in pool.facts.capacity_types
        and (types := _machine_types(pool))
        and len(types) == 1
        and isinstance(zones := pool.facts.zones, frozenset)
        and len(zones) == 1
    )


def _machine_types(pool: DeclaredPool) -> Sequence[str]:
    """The names of its machine types; none if they are not known."""
    machines = pool.facts.machines
    return (
        () if machines is UNKNOWN else (*(each.name for each in machines), *pool.facts.unknown_machine_types)
    )


RULES: Final = (
    Rule(
        name="spot-pools-tainted",
        title="Spot pools repel other pods",
        description="Spot nodes have a taint, on-demand nodes have no spot taint, and no pool makes both.",
        fix="Make a pool of each capacity type, and add a taint to the spot one.",
        group=Group.PLATFORM,
        level=Level.ADVISORY,
        strict=Level.MANDATORY,
        severity=RuleSeverity.HIGH,
        find=find_untainted,
    ),
    Rule(
        name="spot-pools-diversified",
        title="Spot pools buy in several markets",
        description="A spot pool has several machine types or zones.",
        fix="Add machine types or zones.",
        group=Group.PLATFORM,
        level=Level.ADVISORY,
        severity=RuleSeverity.MEDIUM,
        find=find_single_markets,
    ),
)
