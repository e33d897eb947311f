"""Pods without a node selector have a pool: on-demand CPU machines without taints.

Ray heads, submitters and helpers select nothing. Without such a pool they stay pending, or buy a GPU machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.taints import REPELLING
from pulumi_holdfast.program.clusters import cluster_of, clusters, is_one_cluster
from pulumi_holdfast.program.namespaces.ladders import training_namespaces
from pulumi_holdfast.program.pools.all_pools import DeclaredPool, all_pools
from pulumi_holdfast.program.resources import StackResource, once
from pulumi_holdfast.program.settings import MADE_ELSEWHERE, Elsewhere, Settings, is_made_elsewhere
from rule import Finding, Group, Level, Rule, RuleSeverity


def find(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return a finding if a cluster of the program has training namespaces and pools, but no default pool."""
    if is_made_elsewhere(settings, Elsewhere.DEFAULT_POOL):
        return ()
    for namespace in training_namespaces(resources):
        pools = _pools_without_default(resources, cluster_of(namespace.resource, resources))
        if namespace.proven and pools:
            # One for the program: several namespaces lack the same pool.
            return (_finding(pools[0], resources),)
    return ()


@once
def _pools_without_default(resources: Sequence[StackResource], cluster: str) -> tuple[DeclaredPool, ...]:
    """Return the pools that may be in a cluster; none if one of them may be its default pool."""
    found = tuple(
        pool
        for pool in all_pools(resources)
        if is_one_cluster(resources, cluster, cluster_of(pool.resource, resources)) is not False
    )
    return () if any(_may_be_default(pool) for pool in found) else found


def _finding(pool: DeclaredPool, resources: Sequence[StackResource]) -> Finding:
    return Finding(
        urn=pool.resource.urn,
        message="no pool of this program accepts pods without a node selector: each is spot, tainted, or has only GPU "
        "machines. Add an on-demand pool of CPU machines without taints, for Ray heads, submitters and helpers, or declare "
        f"`{MADE_ELSEWHERE}: [{Elsewhere.DEFAULT_POOL.value}]` if another program makes one.",
        # A program that does not make the cluster may leave its other pools to the one that does.
        proven=bool(clusters(resources)),
    )


def _may_be_default(pool: DeclaredPool) -> bool:
    """Return whether it accepts pods without a node selector, or may turn out to."""
    facts = pool.facts
    if facts.is_on_demand is False:
        return False
    tainted = facts.taints is not UNKNOWN and any(each.effect in REPELLING for each in facts.taints)
    only_gpus = (
        facts.machines is not UNKNOWN
        and bool(facts.machines)
        and all(each.capacity.gpus for each in facts.machines)
    )
    return not tainted and not only_gpus


RULE: Final = Rule(
    name="default-pool-exists",
    title="Pods without a node selector have a pool",
    description="An on-demand pool of CPU machines without taints accepts Ray heads, submitters and helpers.",
    fix="Add an on-demand pool of CPU machines without taints.",
    group=Group.PLATFORM,
    level=Level.ADVISORY,
    strict=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
