"""The pools of a stack, whichever cloud they are on, in the one model that the rules are written for."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.policies.inputs.aks import aks_pools
from holdfast.policies.inputs.daemon_sets import with_daemons
from holdfast.policies.inputs.eks import eks_pools
from holdfast.policies.inputs.gke import gke_pools
from holdfast.policies.inputs.karpenter import karpenter_pools
from holdfast.policies.inputs.pool import DeclaredPool
from holdfast.policies.resources import StackResource, once

__all__ = ["DeclaredPool", "all_pools", "declared_pools"]


@once
def all_pools(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """Return all pools that the stack declares: system pools, and those inside a cluster's resource, included."""
    found = (*karpenter_pools(resources), *gke_pools(resources), *aks_pools(resources), *eks_pools(resources))
    return tuple(with_daemons(pool, resources) for pool in found)


@once
def declared_pools(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """Return the pools that the stack declares for jobs."""
    return tuple(pool for pool in all_pools(resources) if pool.is_for_jobs)
