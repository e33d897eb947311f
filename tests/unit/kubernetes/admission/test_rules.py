"""The admission rules of each kind of cluster."""

import pytest

from pulumi_holdfast.config.versions import version_problem
from pulumi_holdfast.kubernetes.admission.pod_admission import policy_name, policy_spec
from pulumi_holdfast.kubernetes.admission.rules import (
    DO_NOT_DISRUPT,
    SAFE_TO_EVICT,
    AdmissionRule,
    AnnotationRule,
    NodeSelection,
    TolerationRule,
    aks_rules,
    eks_rules,
    gke_rules,
    spot_classes,
    workload_identity_rule,
)
from pulumi_holdfast.ladder import taints
from pulumi_holdfast.ladder.labels import (
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
from tests.support.inputs import mapping, objects


def selection(key: str, *values: str) -> NodeSelection:
    return NodeSelection(key=key, values=values)


SPOT_POOLS = selection(POOL, "cpu-spot", "a100-spot")
GPU_POOLS = selection(POOL, "a100", "a100-spot")
AKS_SPOT_RULE, SCALE_SET_RULE, AKS_GPU_RULE, AKS_KEPT_RULE = aks_rules(POOLS)
GKE_SPOT_RULE, GKE_GPU_RULE, GKE_KEPT_RULE = gke_rules(POOLS)
#: The AKS documentation selects spot with either of the last two.
AKS_SPOT_LABELS = (
    selection(CAPACITY_TYPE, "spot"),
    SPOT_POOLS,
    selection(AKS_SCALE_SET_PRIORITY, "spot"),
    selection(AKS_PRIORITY, "spot"),
)
GKE_SPOT_LABELS = (selection(GKE_SPOT, "true"), selection(GKE_PROVISIONING, "spot"), SPOT_POOLS)


@pytest.mark.parametrize(
    ("rule", "taint", "selections"),
    [
        (SPOT_RULE, taints.SPOT, (selection(CAPACITY_TYPE, "spot"), SPOT_POOLS)),
        (GPU_RULE, taints.GPU, (GPU_POOLS,)),
        (AKS_SPOT_RULE, taints.SPOT, AKS_SPOT_LABELS),
        (SCALE_SET_RULE, taints.AKS_SPOT, AKS_SPOT_LABELS),
        (AKS_GPU_RULE, taints.GPU, (GPU_POOLS,)),
        (GKE_SPOT_RULE, taints.GKE_SPOT_TAINT, GKE_SPOT_LABELS),
        (GKE_GPU_RULE, taints.GPU, (GPU_POOLS,)),
    ],
)
def test_pods_that_select_a_pool_by_label_or_name_tolerate_its_taint(
    rule: AdmissionRule, taint: taints.Taint, selections: tuple[NodeSelection, ...]
) -> None:
    assert isinstance(rule, TolerationRule)
    assert rule.taint == taint
    assert rule.selections == selections
    requests = (GPU_RESOURCE,) if rule in (GPU_RULE, AKS_GPU_RULE) else ()
    assert rule.resources == requests
    removed = (DO_NOT_DISRUPT,) if rule in (SPOT_RULE, AKS_SPOT_RULE) else ()
    assert rule.removed_annotations == removed, "interrupted pods must receive the notice, once removed"


def test_all_training_pods_with_cluster_autoscalers_disable_scale_down_eviction() -> None:
    expected = AnnotationRule(name="kept", annotation=SAFE_TO_EVICT, value="false")
    assert expected == AKS_KEPT_RULE == GKE_KEPT_RULE
    assert "variables" not in policy_spec(GKE_KEPT_RULE)
    names = [rule.name for rule in aks_rules(POOLS)]
    assert len(set(names)) == len(names)


def test_eks_keeps_gangs_with_fabric_adapters_in_one_zone() -> None:
    (rule,) = eks_rules(efa=True)
    spec = policy_spec(rule)
    label, affinity = (str(mapping(each, "jsonPatch")["expression"]) for each in objects(spec, "mutations"))
    assert "vpc.amazonaws.com/efa" in str(spec["variables"])
    assert '"topologyKey": dyn("topology.kubernetes.io/zone")' in affinity
    assert "holdfast.dev/efa" in label, "a helper pod in another zone must not attract the gang"
    assert not eks_rules(efa=False)


@pytest.mark.parametrize(("key", "values"), [("", ("spot",)), (CAPACITY_TYPE, ("spot", ""))])
def test_a_rule_without_selections_or_with_an_empty_one_is_rejected(
    key: str, values: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match="'idle' matches no pod"):
        TolerationRule(name="idle", taint=taints.SPOT)
    assert TolerationRule(name="gpu", taint=taints.GPU, resources=(GPU_RESOURCE,))
    with pytest.raises(ValueError, match="empty key or value"):
        NodeSelection(key=key, values=values)


def test_classes_of_spot_pools_select_spot_and_pods_of_their_pools_tolerate_the_class() -> None:
    classes = {"gpus-on-spot": [POOLS[3]], "gpus-kept": [POOLS[2]]}
    rules = gke_rules(POOLS[:2], classes)
    found = {rule.name: rule for rule in rules if isinstance(rule, TolerationRule)}
    assert found["class-gpus-on-spot"] == TolerationRule(
        name="class-gpus-on-spot",
        taint=taints.Taint(key=COMPUTE_CLASS, value="gpus-on-spot"),
        selections=(NodeSelection(key=POOL, values=("a100-spot",)),),
    )
    assert found["gpu"].selections == (NodeSelection(key=POOL, values=("a100-spot", "a100")),)
    assert found["spot"].selections[-1] == NodeSelection(key=POOL, values=("cpu-spot",))
    assert spot_classes(classes) == (NodeSelection(key=COMPUTE_CLASS, values=("gpus-on-spot",)),)
    assert spot_classes({}) == ()
    spot, gpu, _ = gke_rules(())
    assert isinstance(spot, TolerationRule)
    assert isinstance(gpu, TolerationRule)
    assert gpu.selections == (NodeSelection(key=POOL, values=()),)


FIELD = "holdfast:platform.cluster.version"


@pytest.mark.parametrize(
    "version", ["1.36", "1.36.3", "v1.36.3", "1.37", "2.0", "1.36.2-eks-1a2b3c", "1.36+"]
)
def test_a_version_that_serves_mutating_policies_is_accepted(version: str) -> None:
    assert version_problem(FIELD, version, [taints.SPOT]) is None


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
    assert policy_name(rule) == "training-identity-pods"
    (mutation,) = objects(policy_spec(rule), "mutations")
    assert mutation["patchType"] == "JSONPatch"
    assert "variables" not in policy_spec(rule)
