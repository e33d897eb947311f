"""The admission rules of clusters whose pools are GKE's own node pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.admission.rules import AnnotationRule, NodeSelection, TolerationRule
from scheduling import taints
from scheduling.labels import GKE_PROVISIONING, GKE_SPOT, GKE_SPOT_VALUE, POOL, SPOT, CapacityType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from components.admission.rules import AdmissionRule
    from scheduling.pools import Pool

#: GKE's autoscaler moves what runs on a half-empty node elsewhere and takes the node away. A pod that says no keeps its
#: node, but not from a preemption.
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def gke_rules(pools: Iterable[Pool]) -> tuple[AdmissionRule, ...]:
    """Return the rules under which pods reach the spot pools and the GPU pools they ask for, and keep their nodes.

    `pools` are those which pods select by name; what selects a ComputeClass is let in by GKE itself. A pod asks for spot
    by either of GKE's labels or by the name of a spot pool; for GPUs by the name of a GPU pool, as a helper does that runs
    beside the workers of its job. Pods that request GPUs are let in by GKE itself.
    """
    known = tuple(pools)
    spot_pools = tuple(pool.name for pool in known if pool.capacity is CapacityType.SPOT)
    gpu_pools = tuple(pool.name for pool in known if pool.has_gpus)
    return (
        TolerationRule(
            name="spot",
            taint=taints.GKE_SPOT_TAINT,
            selections=(
                NodeSelection(key=GKE_SPOT, values=(GKE_SPOT_VALUE,)),
                NodeSelection(key=GKE_PROVISIONING, values=(SPOT,)),
                NodeSelection(key=POOL, values=spot_pools),
            ),
        ),
        TolerationRule(
            name="gpu",
            taint=taints.GPU,
            selections=(NodeSelection(key=POOL, values=gpu_pools),),
        ),
        AnnotationRule(name="kept", annotation=SAFE_TO_EVICT, value="false"),
    )
