"""The admission rules of clusters whose pools are GKE's own node pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.admission.rules import AnnotationRule, NodeSelection, TolerationRule
from holdfast.scheduling import taints
from holdfast.scheduling.labels import (
    COMPUTE_CLASS,
    GKE_PROVISIONING,
    GKE_SPOT,
    GKE_SPOT_VALUE,
    POOL,
    SPOT,
    CapacityType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.components.admission.rules import AdmissionRule
    from holdfast.scheduling.pools import Pool

#: GKE's autoscaler moves what runs on a half-empty node elsewhere and takes the node away. A pod that says no keeps its
#: node, but not from a preemption.
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def gke_rules(
    pools: Iterable[Pool], classes: Mapping[str, Sequence[Pool]] | None = None
) -> tuple[AdmissionRule, ...]:
    """Return the rules under which pods reach the spot pools and the GPU pools they ask for, and keep their nodes.

    `pools` are those that belong to no ComputeClass; `classes` are the others, by their class. A pod asks for spot by either
    of GKE's labels or by the name of a spot pool; for GPUs by the name of a GPU pool, as a helper does that runs beside the
    workers of its job. Pods that request GPUs, and those that select a class, are let in by GKE itself; not so those that
    name a pool of one, as the pods of a job do that follows a ladder.
    """
    known = tuple(pools)
    of_classes = classes or {}
    members = [pool for each in of_classes.values() for pool in each]
    spot_pools = tuple(pool.name for pool in known if pool.capacity is CapacityType.SPOT)
    gpu_pools = tuple(pool.name for pool in (*known, *members) if pool.has_gpus)
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
        *(_class_rule(name, each) for name, each in of_classes.items()),
        AnnotationRule(name="kept", annotation=SAFE_TO_EVICT, value="false"),
    )


def spot_classes(classes: Mapping[str, Sequence[Pool]]) -> tuple[NodeSelection, ...]:
    """By what pods ask for spot where ComputeClasses stand for pools: by the name of a class of spot pools."""
    names = tuple(
        name for name, pools in classes.items() if any(pool.capacity is CapacityType.SPOT for pool in pools)
    )
    return (NodeSelection(key=COMPUTE_CLASS, values=names),) if names else ()


def _class_rule(name: str, pools: Sequence[Pool]) -> TolerationRule:
    return TolerationRule(
        name=f"class-{name}",
        taint=taints.Taint(key=COMPUTE_CLASS, value=name),
        selections=(NodeSelection(key=POOL, values=tuple(pool.name for pool in pools)),),
    )
