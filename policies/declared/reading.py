"""All pools that a stack declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.declared.aks import aks_declared
from holdfast.policies.declared.gke import gke_declared
from holdfast.policies.declared.karpenter import karpenter_declared
from holdfast.policies.stack import once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.declared.pool import DeclaredPool
    from holdfast.policies.findings import StackResource


@once
def declared_pools(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """The pools of the stack's NodePools, node pools and agent pools, in the order in which they are declared there."""
    return (*karpenter_declared(resources), *gke_declared(resources), *aks_declared(resources))
