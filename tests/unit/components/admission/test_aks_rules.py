"""Which rules AKS's pools ask for."""

from __future__ import annotations

from holdfast.components.admission.rules import (
    DO_NOT_DISRUPT,
    SAFE_TO_EVICT,
    AnnotationRule,
    NodeSelection,
    TolerationRule,
    aks_rules,
)
from holdfast.scheduling import taints
from holdfast.scheduling.labels import AKS_PRIORITY, AKS_SCALE_SET_PRIORITY, CAPACITY_TYPE, POOL
from tests.support.builders.training_jobs import GPU_RULE, POOLS

SPOT_RULE, SCALE_SET_RULE, AKS_GPU_RULE, KEPT_RULE = aks_rules(POOLS)


def test_spot_is_asked_for_as_everywhere_and_by_aks_own_labels() -> None:
    assert isinstance(SPOT_RULE, TolerationRule), "it lets pods in"
    assert SPOT_RULE.selections == (
        NodeSelection(key=CAPACITY_TYPE, values=("spot",)),
        NodeSelection(key=POOL, values=("cpu-spot", "a100-spot")),
        NodeSelection(key=AKS_SCALE_SET_PRIORITY, values=("spot",)),
        NodeSelection(key=AKS_PRIORITY, values=("spot",)),
    ), "AKS's own pages tell users to select by either of the last two"
    assert SPOT_RULE.taint == taints.SPOT, "what is added must match the taint of the spot pools"
    assert SPOT_RULE.removed_annotations == (DO_NOT_DISRUPT,), "as everywhere where Karpenter makes nodes"


def test_whoever_asks_for_spot_tolerates_aks_taint_as_well() -> None:
    assert isinstance(SPOT_RULE, TolerationRule), "it lets pods in"
    assert isinstance(SCALE_SET_RULE, TolerationRule), "it lets pods in"
    assert SCALE_SET_RULE.taint == taints.AKS_SPOT, "scale sets have both taints"
    assert SCALE_SET_RULE.selections == SPOT_RULE.selections, "one without the other lets nobody in"
    assert SCALE_SET_RULE.removed_annotations == (), "two policies would take the same one away"


def test_gpus_are_asked_for_as_everywhere() -> None:
    assert AKS_GPU_RULE == GPU_RULE, "their taint is ours in both ways of scaling"


def test_all_training_pods_keep_their_nodes() -> None:
    assert AnnotationRule(name="kept", annotation=SAFE_TO_EVICT, value="false") == KEPT_RULE, (
        "the autoscaler of scale sets would move a job that trains to empty a node"
    )


def test_each_rule_has_a_name_of_its_own() -> None:
    names = [rule.name for rule in aks_rules(POOLS)]
    assert len(set(names)) == len(names), "policies are named after them"
