"""The admission rules of AKS clusters, whether node auto-provisioning or scale sets make their pools."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.components.admission.gke_rules import SAFE_TO_EVICT
from holdfast.components.admission.karpenter_rules import karpenter_rules
from holdfast.components.admission.rules import AnnotationRule, NodeSelection
from holdfast.scheduling import taints
from holdfast.scheduling.labels import AKS_PRIORITY, AKS_SCALE_SET_PRIORITY, AKS_SPOT_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.components.admission.rules import AdmissionRule
    from holdfast.scheduling.pools import Pool

#: How AKS's own pages tell users to select spot.
_AKS_SELECTIONS = tuple(
    NodeSelection(key=key, values=(AKS_SPOT_VALUE,)) for key in (AKS_SCALE_SET_PRIORITY, AKS_PRIORITY)
)


def aks_rules(pools: Iterable[Pool]) -> tuple[AdmissionRule, ...]:
    """Return the rules under which pods reach the spot pools and the GPU pools they ask for, and keep their nodes.

    They are those of Karpenter's pools, with AKS's labels as further ways to ask for spot, and a second toleration for
    it: the nodes of a scale set have AKS's taint beside ours. The cluster autoscaler of scale sets, like GKE's, would
    move a job that trains to empty a node. In both ways of scaling all rules hold, so that neither jobs nor what they
    rely on change with it.
    """
    spot, gpu = karpenter_rules(pools)
    asked = replace(spot, selections=(*spot.selections, *_AKS_SELECTIONS))
    return (
        asked,
        replace(asked, name="scale-set-spot", taint=taints.AKS_SPOT, removed_annotations=()),
        gpu,
        AnnotationRule(name="kept", annotation=SAFE_TO_EVICT, value="false"),
    )
