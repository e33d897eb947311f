"""The admission rules of clusters whose pools Karpenter makes: on EKS, on AKS with node auto-provisioning, and local."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.admission.rules import NodeSelection, TolerationRule
from holdfast.scheduling import taints
from holdfast.scheduling.labels import CAPACITY_TYPE, GPU_RESOURCE, POOL, SPOT, CapacityType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.scheduling.pools import Pool

#: Karpenter leaves a pod that carries it out of the drain on a spot interruption notice: it would get neither SIGTERM
#: nor the DisruptionTarget condition, and lose what it trained since its last checkpoint.
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


def karpenter_rules(pools: Iterable[Pool]) -> tuple[TolerationRule, ...]:
    """Return the rules under which pods reach the spot pools and the GPU pools they ask for.

    A pod asks for spot by the capacity type or by the name of a spot pool; for GPUs by requesting some, or by the name of
    a GPU pool, as a helper does that runs beside the workers of its job.
    """
    known = tuple(pools)
    spot_pools = tuple(pool.name for pool in known if pool.capacity is CapacityType.SPOT)
    gpu_pools = tuple(pool.name for pool in known if pool.has_gpus)
    return (
        TolerationRule(
            name="spot",
            taint=taints.SPOT,
            selections=(
                NodeSelection(key=CAPACITY_TYPE, values=(SPOT,)),
                NodeSelection(key=POOL, values=spot_pools),
            ),
            removed_annotations=(DO_NOT_DISRUPT,),
        ),
        TolerationRule(
            name="gpu",
            taint=taints.GPU,
            selections=(NodeSelection(key=POOL, values=gpu_pools),),
            resources=(GPU_RESOURCE,),
        ),
    )
