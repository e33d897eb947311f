"""Spot nodes repel pods that do not tolerate spot, and no pool mixes spot with on-demand.

A pod without a node selector runs on the cheapest machine, which is a spot one: a Ray head there takes its whole cluster
down with it. A pool of both capacity types buys spot first and has the same taints on all its nodes, so its on-demand
machines repel the very pods that fall back to them.
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


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
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


RULE: Final = Rule(
    name="spot-pools-tainted",
    title="Spot pools repel other pods",
    description="Spot nodes have a taint, on-demand nodes have no spot taint, and no pool makes both.",
    fix="Make a pool of each capacity type, and add a taint to the spot one.",
    group=Group.PLATFORM,
    level=Level.ADVISORY,
    strict=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
