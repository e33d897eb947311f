"""What an admission rule may be, and which rules Karpenter's pools ask for."""

from __future__ import annotations

import pytest

from holdfast.components.admission.pod_admission import policy_name, policy_spec
from holdfast.components.admission.rules import (
    DO_NOT_DISRUPT,
    SAFE_TO_EVICT,
    AnnotationRule,
    NodeSelection,
    TolerationRule,
    aks_rules,
    gke_rules,
    spot_classes,
    version_problem,
    workload_identity_rule,
)
from holdfast.scheduling import taints
from holdfast.scheduling.labels import (
    AKS_PRIORITY,
    AKS_SCALE_SET_PRIORITY,
    CAPACITY_TYPE,
    COMPUTE_CLASS,
    GKE_PROVISIONING,
    GKE_SPOT,
    GPU_RESOURCE,
    POOL,
)
from tests.support.builders.training_jobs import GPU_RULE, POOLS, SPOT_RULE
from tests.support.inputs import objects


def test_spot_is_asked_for_by_capacity_type_or_by_a_spot_pools_name() -> None:
    assert SPOT_RULE.selections == (
        NodeSelection(key=CAPACITY_TYPE, values=("spot",)),
        NodeSelection(key=POOL, values=("cpu-spot", "a100-spot")),
    ), "on-demand pools must not be among the ways onto spot"
    assert SPOT_RULE.taint == taints.SPOT, "what is added must match the taint of the spot pools"
    assert SPOT_RULE.resources == (), "no request for a resource is a wish for spot"


def test_gpus_are_asked_for_by_request_or_by_a_gpu_pools_name() -> None:
    assert GPU_RULE.resources == (GPU_RESOURCE,), "requesting GPUs is the usual way to ask for them"
    assert GPU_RULE.selections == (NodeSelection(key=POOL, values=("a100", "a100-spot")),), (
        "a helper of a job follows its ladder to GPU pools without requesting GPUs"
    )


def test_only_spot_pods_lose_what_keeps_them_from_being_drained() -> None:
    assert SPOT_RULE.removed_annotations == (DO_NOT_DISRUPT,), "an interrupted pod must be told"
    assert GPU_RULE.removed_annotations == (), "on-demand GPU pods keep what their author wrote"


def test_a_rule_by_which_no_pod_can_ask_is_refused() -> None:
    with pytest.raises(ValueError, match="'idle' matches no pod"):
        TolerationRule(name="idle", taint=taints.SPOT)


@pytest.mark.parametrize(("key", "values"), [("", ("spot",)), (CAPACITY_TYPE, ("spot", ""))])
def test_a_selection_without_a_key_or_of_an_empty_value_is_refused(key: str, values: tuple[str, ...]) -> None:
    # An absent label reads as "" in the expressions, so an empty value would match pods that select nothing.
    with pytest.raises(ValueError, match="empty key or value"):
        NodeSelection(key=key, values=values)


AKS_SPOT_RULE, SCALE_SET_RULE, AKS_GPU_RULE, AKS_KEPT_RULE = aks_rules(POOLS)


def test_spot_is_asked_for_as_everywhere_and_by_aks_own_labels() -> None:
    assert isinstance(AKS_SPOT_RULE, TolerationRule), "it lets pods in"
    assert AKS_SPOT_RULE.selections == (
        NodeSelection(key=CAPACITY_TYPE, values=("spot",)),
        NodeSelection(key=POOL, values=("cpu-spot", "a100-spot")),
        NodeSelection(key=AKS_SCALE_SET_PRIORITY, values=("spot",)),
        NodeSelection(key=AKS_PRIORITY, values=("spot",)),
    ), "AKS's own pages tell users to select by either of the last two"
    assert AKS_SPOT_RULE.taint == taints.SPOT, "what is added must match the taint of the spot pools"
    assert AKS_SPOT_RULE.removed_annotations == (DO_NOT_DISRUPT,), "as everywhere where Karpenter makes nodes"


def test_whoever_asks_for_spot_tolerates_aks_taint_as_well() -> None:
    assert isinstance(AKS_SPOT_RULE, TolerationRule), "it lets pods in"
    assert isinstance(SCALE_SET_RULE, TolerationRule), "it lets pods in"
    assert SCALE_SET_RULE.taint == taints.AKS_SPOT, "scale sets have both taints"
    assert SCALE_SET_RULE.selections == AKS_SPOT_RULE.selections, "one without the other lets nobody in"
    assert SCALE_SET_RULE.removed_annotations == (), "two policies would take the same one away"


def test_gpus_are_asked_for_as_everywhere() -> None:
    assert AKS_GPU_RULE == GPU_RULE, "their taint is ours in both ways of scaling"


def test_all_training_pods_keep_their_aks_nodes() -> None:
    assert AnnotationRule(name="kept", annotation=SAFE_TO_EVICT, value="false") == AKS_KEPT_RULE, (
        "the autoscaler of scale sets would move a job that trains to empty a node"
    )


def test_each_rule_has_a_name_of_its_own() -> None:
    names = [rule.name for rule in aks_rules(POOLS)]
    assert len(set(names)) == len(names), "policies are named after them"


GKE_SPOT_RULE, GKE_GPU_RULE, GKE_KEPT_RULE = gke_rules(POOLS)


def test_spot_is_asked_for_by_gkes_labels_or_by_a_spot_pools_name() -> None:
    assert isinstance(GKE_SPOT_RULE, TolerationRule), "it lets pods in"
    assert GKE_SPOT_RULE.selections == (
        NodeSelection(key=GKE_SPOT, values=("true",)),
        NodeSelection(key=GKE_PROVISIONING, values=("spot",)),
        NodeSelection(key=POOL, values=("cpu-spot", "a100-spot")),
    ), "on-demand pools must not be among the ways onto spot"
    assert GKE_SPOT_RULE.taint == taints.GKE_SPOT_TAINT, "what is added must match the taint of the spot pools"


def test_helpers_reach_gpu_pools_by_name_and_the_rest_is_gkes() -> None:
    assert isinstance(GKE_GPU_RULE, TolerationRule), "it lets pods in"
    assert GKE_GPU_RULE.selections == (NodeSelection(key=POOL, values=("a100", "a100-spot")),), (
        "a helper of a job follows its ladder to GPU pools without requesting GPUs"
    )
    assert GKE_GPU_RULE.resources == (), "GKE's own admission lets in who requests GPUs"


def test_all_training_pods_keep_their_gke_nodes() -> None:
    assert AnnotationRule(name="kept", annotation=SAFE_TO_EVICT, value="false") == GKE_KEPT_RULE, (
        "the autoscaler would move a job that trains to empty a node"
    )


def test_a_rule_for_all_pods_asks_no_question_first() -> None:
    spec = policy_spec(GKE_KEPT_RULE)
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


FIELD = "holdfast:platform.cluster.version"


@pytest.mark.parametrize(
    "version", ["1.36", "1.36.3", "v1.36.3", "1.37", "2.0", "1.36.2-eks-1a2b3c", "1.36+"]
)
def test_a_cluster_that_serves_mutating_policies_is_taken(version: str) -> None:
    assert version_problem(FIELD, version, [taints.SPOT]) is None, (
        f"{version} serves MutatingAdmissionPolicy v1"
    )


@pytest.mark.parametrize("version", ["1.35", "1.9", "1.35.9", "0.99"])
def test_an_older_cluster_is_refused_with_the_tolerations_to_write_by_hand(version: str) -> None:
    problem = version_problem(FIELD, version, [taints.SPOT, taints.GPU])
    assert problem is not None, f"{version} serves no MutatingAdmissionPolicy v1"
    message = str(problem)
    for part in (
        FIELD,
        f'"{version}"',
        "1.36 or later",
        '{key: karpenter.sh/capacity-type, operator: Equal, value: "spot", effect: NoSchedule}',
        '{key: nvidia.com/gpu, operator: Equal, value: "present", effect: NoSchedule}',
    ):
        assert part in message, f"the refusal must say {part}: {message}"


@pytest.mark.parametrize("version", ["", "latest", "1", "1.x", "one.thirty-six"])
def test_what_is_no_version_is_refused(version: str) -> None:
    problem = version_problem(FIELD, version, [taints.SPOT])
    assert problem is not None, f"{version!r} says nothing about what the cluster serves"
    assert 'such as "1.36"' in problem.fix, "the refusal must show how a version is written"


def test_its_policy_stands_beside_those_of_taints() -> None:
    rule = workload_identity_rule("trainer")
    assert policy_name(rule) == "training-identity-pods", "under a name of its own"
    (mutation,) = objects(policy_spec(rule), "mutations")
    assert mutation["patchType"] == "JSONPatch", "as those of taints"
    assert "variables" not in policy_spec(rule), "it asks for nothing but the account"
