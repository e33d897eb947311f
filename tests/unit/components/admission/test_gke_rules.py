"""Which rules GKE's pools ask for."""

from __future__ import annotations

from holdfast.components.admission.pod_admission import policy_spec
from holdfast.components.admission.rules import (
    SAFE_TO_EVICT,
    AnnotationRule,
    NodeSelection,
    TolerationRule,
    gke_rules,
    spot_classes,
)
from holdfast.scheduling import taints
from holdfast.scheduling.labels import COMPUTE_CLASS, GKE_PROVISIONING, GKE_SPOT, POOL
from tests.support.builders.training_jobs import POOLS

SPOT_RULE, GPU_RULE, KEPT_RULE = gke_rules(POOLS)


def test_spot_is_asked_for_by_gkes_labels_or_by_a_spot_pools_name() -> None:
    assert isinstance(SPOT_RULE, TolerationRule), "it lets pods in"
    assert SPOT_RULE.selections == (
        NodeSelection(key=GKE_SPOT, values=("true",)),
        NodeSelection(key=GKE_PROVISIONING, values=("spot",)),
        NodeSelection(key=POOL, values=("cpu-spot", "a100-spot")),
    ), "on-demand pools must not be among the ways onto spot"
    assert SPOT_RULE.taint == taints.GKE_SPOT_TAINT, "what is added must match the taint of the spot pools"


def test_helpers_reach_gpu_pools_by_name_and_the_rest_is_gkes() -> None:
    assert isinstance(GPU_RULE, TolerationRule), "it lets pods in"
    assert GPU_RULE.selections == (NodeSelection(key=POOL, values=("a100", "a100-spot")),), (
        "a helper of a job follows its ladder to GPU pools without requesting GPUs"
    )
    assert GPU_RULE.resources == (), "GKE's own admission lets in who requests GPUs"


def test_all_training_pods_keep_their_nodes() -> None:
    assert AnnotationRule(name="kept", annotation=SAFE_TO_EVICT, value="false") == KEPT_RULE, (
        "the autoscaler would move a job that trains to empty a node"
    )


def test_a_rule_for_all_pods_asks_no_question_first() -> None:
    spec = policy_spec(KEPT_RULE)
    assert "variables" not in spec, "what nothing refers to is not computed for each pod"


def test_pools_that_are_not_selected_by_name_leave_rules_that_let_nobody_in() -> None:
    spot, gpu, _ = gke_rules(())
    assert isinstance(spot, TolerationRule), "spot can still be asked for by label"
    assert isinstance(gpu, TolerationRule), "and nothing is"
    assert gpu.selections == (NodeSelection(key=POOL, values=()),), "there is no GPU pool to name"


def test_pods_that_name_a_pool_of_a_class_tolerate_the_classs_taint() -> None:
    on_spot, on_demand = POOLS[3], POOLS[2]
    rules = gke_rules(POOLS[:2], {"gpus-on-spot": [on_spot], "gpus-kept": [on_demand]})
    found = {rule.name: rule for rule in rules if isinstance(rule, TolerationRule)}
    assert found["class-gpus-on-spot"] == TolerationRule(
        name="class-gpus-on-spot",
        taint=taints.Taint(key=COMPUTE_CLASS, value="gpus-on-spot"),
        selections=(NodeSelection(key=POOL, values=("a100-spot",)),),
    ), "a ladder names pools, and GKE lets in only who names the class"
    assert found["gpu"].selections == (NodeSelection(key=POOL, values=("a100-spot", "a100")),), (
        "a helper needs GKE's own toleration as well"
    )
    assert found["spot"].selections[-1] == NodeSelection(key=POOL, values=("cpu-spot",)), (
        "nodes of a class have its taint and not that of spot"
    )


def test_a_class_of_spot_pools_is_a_way_to_ask_for_spot() -> None:
    classes = {"gpus-on-spot": [POOLS[3]], "gpus-kept": [POOLS[2]]}
    assert spot_classes(classes) == (NodeSelection(key=COMPUTE_CLASS, values=("gpus-on-spot",)),), (
        "a job that selects it follows its ladder"
    )
    assert spot_classes({}) == (), "without classes nobody can"
