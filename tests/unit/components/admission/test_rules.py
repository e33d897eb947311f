"""The admission rules of each kind of cluster."""

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


def test_karpenter_spot_pods_are_selected_by_capacity_type_or_pool_name_and_lose_the_annotation() -> None:
    assert SPOT_RULE.selections == (
        NodeSelection(key=CAPACITY_TYPE, values=("spot",)),
        NodeSelection(key=POOL, values=("cpu-spot", "a100-spot")),
    ), "on-demand pools must not be among the selections"
    assert SPOT_RULE.taint == taints.SPOT, "the toleration must match the taint of the spot pools"
    assert SPOT_RULE.resources == (), "a resource request does not select spot"
    assert SPOT_RULE.removed_annotations == (DO_NOT_DISRUPT,), "interrupted pods must receive the notice"
    assert GPU_RULE.removed_annotations == (), "on-demand GPU pods keep their annotations"


def test_karpenter_pods_reach_gpus_by_request_or_pool_name() -> None:
    assert GPU_RULE.resources == (GPU_RESOURCE,), "requesting GPUs is the usual way to get them"
    assert GPU_RULE.selections == (NodeSelection(key=POOL, values=("a100", "a100-spot")),), (
        "a helper pod follows its ladder to GPU pools without requesting GPUs"
    )


@pytest.mark.parametrize(("key", "values"), [("", ("spot",)), (CAPACITY_TYPE, ("spot", ""))])
def test_a_rule_without_selections_or_with_an_empty_one_is_rejected(
    key: str, values: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match="'idle' matches no pod"):
        TolerationRule(name="idle", taint=taints.SPOT)
    with pytest.raises(ValueError, match="empty key or value"):
        NodeSelection(key=key, values=values)


AKS_SPOT_RULE, SCALE_SET_RULE, AKS_GPU_RULE, AKS_KEPT_RULE = aks_rules(POOLS)


def test_aks_spot_pods_are_selected_by_all_labels_and_tolerate_both_taints() -> None:
    assert isinstance(AKS_SPOT_RULE, TolerationRule), "it adds a toleration"
    assert AKS_SPOT_RULE.selections == (
        NodeSelection(key=CAPACITY_TYPE, values=("spot",)),
        NodeSelection(key=POOL, values=("cpu-spot", "a100-spot")),
        NodeSelection(key=AKS_SCALE_SET_PRIORITY, values=("spot",)),
        NodeSelection(key=AKS_PRIORITY, values=("spot",)),
    ), "the AKS documentation selects spot with either of the last two"
    assert AKS_SPOT_RULE.taint == taints.SPOT, "the toleration must match the taint of the spot pools"
    assert AKS_SPOT_RULE.removed_annotations == (DO_NOT_DISRUPT,), "as on every cluster with Karpenter"
    assert isinstance(AKS_SPOT_RULE, TolerationRule), "it adds a toleration"
    assert isinstance(SCALE_SET_RULE, TolerationRule), "it adds a toleration"
    assert SCALE_SET_RULE.taint == taints.AKS_SPOT, "scale sets have both taints"
    assert SCALE_SET_RULE.selections == AKS_SPOT_RULE.selections, "a pod needs both tolerations"
    assert SCALE_SET_RULE.removed_annotations == (), "one policy removes the annotation already"


def test_aks_has_karpenters_gpu_rule_and_unique_rule_names() -> None:
    assert AKS_GPU_RULE == GPU_RULE, "the taint is the same in both modes"
    names = [rule.name for rule in aks_rules(POOLS)]
    assert len(set(names)) == len(names), "policies are named after them"


def test_all_training_pods_with_cluster_autoscalers_disable_scale_down_eviction() -> None:
    expected = AnnotationRule(name="kept", annotation=SAFE_TO_EVICT, value="false")
    assert expected == AKS_KEPT_RULE == GKE_KEPT_RULE, "both autoscalers evict pods from underused nodes"
    spec = policy_spec(GKE_KEPT_RULE)
    assert "variables" not in spec, "unused variables would be evaluated for each pod"


GKE_SPOT_RULE, GKE_GPU_RULE, GKE_KEPT_RULE = gke_rules(POOLS)


def test_gke_spot_pods_are_selected_by_gke_labels_and_gpu_pods_by_pool_name() -> None:
    assert isinstance(GKE_SPOT_RULE, TolerationRule), "it adds a toleration"
    assert GKE_SPOT_RULE.selections == (
        NodeSelection(key=GKE_SPOT, values=("true",)),
        NodeSelection(key=GKE_PROVISIONING, values=("spot",)),
        NodeSelection(key=POOL, values=("cpu-spot", "a100-spot")),
    ), "on-demand pools must not be among the selections"
    assert GKE_SPOT_RULE.taint == taints.GKE_SPOT_TAINT, "the toleration must match the spot pools' taint"
    assert isinstance(GKE_GPU_RULE, TolerationRule), "it adds a toleration"
    assert GKE_GPU_RULE.selections == (NodeSelection(key=POOL, values=("a100", "a100-spot")),), (
        "a helper pod follows its ladder to GPU pools without requesting GPUs"
    )
    assert GKE_GPU_RULE.resources == (), "GKE itself adds the toleration to pods that request GPUs"


def test_classes_of_spot_pools_select_spot_and_pods_of_their_pools_tolerate_the_class() -> None:
    classes = {"gpus-on-spot": [POOLS[3]], "gpus-kept": [POOLS[2]]}
    rules = gke_rules(POOLS[:2], classes)
    found = {rule.name: rule for rule in rules if isinstance(rule, TolerationRule)}
    assert found["class-gpus-on-spot"] == TolerationRule(
        name="class-gpus-on-spot",
        taint=taints.Taint(key=COMPUTE_CLASS, value="gpus-on-spot"),
        selections=(NodeSelection(key=POOL, values=("a100-spot",)),),
    ), "ladders name pools, and GKE adds the toleration only to pods that select the class"
    assert found["gpu"].selections == (NodeSelection(key=POOL, values=("a100-spot", "a100")),), (
        "a helper pod needs GKE's GPU toleration as well"
    )
    assert found["spot"].selections[-1] == NodeSelection(key=POOL, values=("cpu-spot",)), (
        "nodes of a class have its taint instead of the spot taint"
    )
    assert spot_classes(classes) == (NodeSelection(key=COMPUTE_CLASS, values=("gpus-on-spot",)),), (
        "a job that selects it follows its ladder"
    )
    assert spot_classes({}) == (), "without classes there is no such label"
    spot, gpu, _ = gke_rules(())
    assert isinstance(spot, TolerationRule), "GKE's labels still select spot"
    assert isinstance(gpu, TolerationRule), "no spot pool outside a class"
    assert gpu.selections == (NodeSelection(key=POOL, values=()),), "there is no GPU pool to name"


FIELD = "holdfast:platform.cluster.version"


@pytest.mark.parametrize(
    "version", ["1.36", "1.36.3", "v1.36.3", "1.37", "2.0", "1.36.2-eks-1a2b3c", "1.36+"]
)
def test_a_version_that_serves_mutating_policies_is_accepted(version: str) -> None:
    assert version_problem(FIELD, version, [taints.SPOT]) is None, (
        f"{version} serves MutatingAdmissionPolicy v1"
    )


@pytest.mark.parametrize("version", ["1.35", "1.9", "1.35.9", "0.99"])
def test_an_older_version_is_rejected_with_the_explicit_tolerations(version: str) -> None:
    problem = version_problem(FIELD, version, [taints.SPOT, taints.GPU])
    assert problem is not None, f"{version} does not serve MutatingAdmissionPolicy v1"
    message = str(problem)
    for part in (
        FIELD,
        f'"{version}"',
        "1.36 or later",
        '{key: karpenter.sh/capacity-type, operator: Equal, value: "spot", effect: NoSchedule}',
        '{key: nvidia.com/gpu, operator: Equal, value: "present", effect: NoSchedule}',
    ):
        assert part in message, f"the message must contain {part}: {message}"


@pytest.mark.parametrize("version", ["", "latest", "1", "1.x", "one.thirty-six"])
def test_a_malformed_version_is_rejected(version: str) -> None:
    problem = version_problem(FIELD, version, [taints.SPOT])
    assert problem is not None, f"{version!r} is not a version"
    assert 'such as "1.36"' in problem.fix, "the message must show the format of a version"


def test_the_identity_rule_has_a_policy_of_its_own() -> None:
    rule = workload_identity_rule("trainer")
    assert policy_name(rule) == "training-identity-pods", "its own name"
    (mutation,) = objects(policy_spec(rule), "mutations")
    assert mutation["patchType"] == "JSONPatch", "like those of taints"
    assert "variables" not in policy_spec(rule), "the service account is its only condition"
