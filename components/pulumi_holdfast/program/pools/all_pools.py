"""The pools of a stack, whichever cloud they are on, in the one model that the rules are written for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pulumi_holdfast.program.clusters import cluster_of, clusters
from pulumi_holdfast.program.fields import unread
from pulumi_holdfast.program.pools.aks import aks_pools
from pulumi_holdfast.program.pools.eks import eks_pools
from pulumi_holdfast.program.pools.gke import gke_pools
from pulumi_holdfast.program.pools.karpenter import karpenter_pools
from pulumi_holdfast.program.pools.pool import DeclaredPool
from pulumi_holdfast.program.resources import StackResource, once

__all__ = ["DeclaredPool", "all_pools", "declared_pools"]


@once
def all_pools(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """Return all pools that the stack declares: system pools, and those inside a cluster's resource, included."""
    found = (*karpenter_pools(resources), *gke_pools(resources), *aks_pools(resources), *eks_pools(resources))
    return tuple(_with_cluster(pool, resources) for pool in found)


def _with_cluster(pool: DeclaredPool, resources: Sequence[StackResource]) -> DeclaredPool:
    """Return a pool with what its cluster sets that no rule judges."""
    unread = _unread_of(resources, cluster_of(pool.resource, resources))
    return (
        replace(pool, facts=replace(pool.facts, unmodeled=(*pool.facts.unmodeled, *unread)))
        if unread
        else pool
    )


@once
def _unread_of(resources: Sequence[StackResource], cluster: str) -> tuple[str, ...]:
    return next((unread(each) for each in clusters(resources) if each.urn == cluster), ())


@once
def declared_pools(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """Return the pools that the stack declares for jobs."""
    return tuple(pool for pool in all_pools(resources) if pool.is_for_jobs)
