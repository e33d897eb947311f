"""How admission mutates pods on a real API server."""

import pytest
from hypothesis import HealthCheck, given, settings

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import annotations_of
from pulumi_holdfast.kubernetes.admission.rules import DO_NOT_DISRUPT, TolerationRule, karpenter_rules
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, GPU_RESOURCE, POOL
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.training_jobs import (
    RULES,
    container,
    expression,
    pod,
    preferred_affinity,
    required_affinity,
)
from tests.support.clusters.admission import (
    GIVEN_SPOT,
    GPU_TOLERATION,
    OTHER_NAMESPACE,
    REWRITE,
    SELECTS_SPOT,
    SPOT_TOLERATION,
    TOUCHED,
    TRAINING_NAMESPACE,
    admission_objects,
    admitted,
    admitted_tolerations,
    expected_annotations,
    expected_tolerations,
    tolerations_of,
)
from tests.support.json_objects import obj
from tests.support.strategies.admitted_jobs import pods

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(
    ("asking", "spec"),
    [
        ("the capacity type", SELECTS_SPOT),
        ("a spot pool's name", {"nodeSelector": {POOL: "cpu-spot"}}),
        (
            "a required affinity for spot",
            {"affinity": required_affinity([expression(CAPACITY_TYPE, "In", "spot")])},
        ),
        (
            "a required affinity that allows spot",
            {"affinity": required_affinity([expression(CAPACITY_TYPE, "In", "on-demand", "spot")])},
        ),
        (
            "the second of two terms",
            {
                "affinity": required_affinity(
                    [expression(CAPACITY_TYPE, "In", "on-demand")], [expression(POOL, "In", "cpu-spot")]
                )
            },
        ),
    ],
)
def test_a_pod_that_names_spot_gets_the_toleration_once(cluster: KubeClient, asking: str, spec: Json) -> None:
    given_to_it = admitted_tolerations(cluster, pod(namespace=TRAINING_NAMESPACE, spec=spec))
    assert given_to_it == [SPOT_TOLERATION], (
        f"a pod that asks for spot by {asking} must get its toleration, exactly once"
    )


@pytest.mark.parametrize(
    ("asking", "spec"),
    [
        ("nothing", {}),
        ("on-demand", {"nodeSelector": {CAPACITY_TYPE: "on-demand"}}),
        ("an on-demand pool", {"nodeSelector": {POOL: "cpu"}}),
        ("a pool unheard of", {"nodeSelector": {POOL: "spot"}}),
        ("spot under another key", {"nodeSelector": {"example.com/market": "spot"}}),
        ("anything but spot", {"affinity": required_affinity([expression(CAPACITY_TYPE, "NotIn", "spot")])}),
        ("any capacity type", {"affinity": required_affinity([expression(CAPACITY_TYPE, "Exists")])}),
        ("spot if there is some", {"affinity": preferred_affinity(expression(CAPACITY_TYPE, "In", "spot"))}),
    ],
)
def test_a_pod_that_does_not_name_spot_gets_nothing(cluster: KubeClient, asking: str, spec: Json) -> None:
    given_to_it = admitted_tolerations(cluster, pod(namespace=TRAINING_NAMESPACE, spec=spec))
    assert given_to_it == [], f"a pod that asks for {asking} must not be let onto spot"


@pytest.mark.parametrize(
    "own",
    [
        SPOT_TOLERATION,
        {"key": CAPACITY_TYPE, "value": "spot"},
        {"key": CAPACITY_TYPE, "operator": "Exists"},
        {"key": CAPACITY_TYPE, "operator": "Exists", "effect": "NoSchedule"},
        {"operator": "Exists"},
        {"operator": "Exists", "effect": "NoSchedule"},
    ],
)
def test_a_pod_that_tolerates_spot_already_gets_no_second_toleration(cluster: KubeClient, own: Json) -> None:
    manifest = pod(namespace=TRAINING_NAMESPACE, spec={**SELECTS_SPOT, "tolerations": [own]})
    assert admitted_tolerations(cluster, manifest) == [own]


@pytest.mark.parametrize(
    "own",
    [
        {"key": CAPACITY_TYPE, "operator": "Equal", "value": "reserved", "effect": "NoSchedule"},
        {"key": CAPACITY_TYPE, "operator": "Exists", "effect": "NoExecute"},
        {"operator": "Exists", "effect": "PreferNoSchedule"},
        {"key": "example.com/other", "operator": "Exists"},
    ],
)
def test_a_toleration_that_does_not_match_the_taint_does_not_count(cluster: KubeClient, own: Json) -> None:
    manifest = pod(namespace=TRAINING_NAMESPACE, spec={**SELECTS_SPOT, "tolerations": [own]})
    assert admitted_tolerations(cluster, manifest) == [own, SPOT_TOLERATION]


@pytest.mark.parametrize(
    ("asking", "spec"),
    [
        ("a container", {"containers": [container(), container("1", name="beside")]}),
        ("an init container", {"initContainers": [container("8", name="fetch")]}),
        ("a GPU pool's name", {"nodeSelector": {POOL: "a100"}}),
    ],
)
def test_a_pod_that_asks_for_gpus_gets_their_toleration_once(
    cluster: KubeClient, asking: str, spec: Json
) -> None:
    given_to_it = admitted_tolerations(cluster, pod(namespace=TRAINING_NAMESPACE, spec=spec))
    assert given_to_it == [GPU_TOLERATION], (
        f"a pod that asks for GPUs by {asking} must get their toleration, exactly once"
    )


def test_a_pod_with_a_limit_of_zero_gpus_stays_off_gpu_machines(cluster: KubeClient) -> None:
    manifest = pod(namespace=TRAINING_NAMESPACE, containers=[container("0")])
    assert admitted_tolerations(cluster, manifest) == []


def test_gpus_requested_without_a_limit_are_refused_by_the_api_itself(cluster: KubeClient) -> None:
    requested: Json = {**container(), "resources": {"requests": {GPU_RESOURCE: "1"}}}
    with pytest.raises(ApiError, match="Limit must be set"):
        admitted(cluster, pod(namespace=TRAINING_NAMESPACE, containers=[requested]))


def test_a_pod_on_a_spot_gpu_pool_gets_both_tolerations(cluster: KubeClient) -> None:
    by_name = pod(namespace=TRAINING_NAMESPACE, spec={"nodeSelector": {POOL: "a100-spot"}})
    by_both = pod(namespace=TRAINING_NAMESPACE, containers=[container("8")], spec=SELECTS_SPOT)
    for manifest in (by_name, by_both):
        given_to_it = sorted(admitted_tolerations(cluster, manifest), key=str)
        assert given_to_it == sorted([SPOT_TOLERATION, GPU_TOLERATION], key=str)


@pytest.mark.parametrize("rule", karpenter_rules(()), ids=lambda rule: rule.name)
def test_the_rules_of_a_stack_without_spot_or_gpu_pools_compile(
    cluster: KubeClient, rule: TolerationRule
) -> None:
    policy, _ = admission_objects([rule])
    accepted = cluster.apply(policy, field_manager="tests", dry_run=True)
    assert accepted["kind"] == "MutatingAdmissionPolicy", "an empty list of pools must be valid CEL too"


def test_a_pod_outside_training_namespaces_is_left_alone(cluster: KubeClient) -> None:
    manifest = pod(
        namespace=OTHER_NAMESPACE,
        annotations={DO_NOT_DISRUPT: "true"},
        containers=[container("1")],
        spec=SELECTS_SPOT,
    )
    stored = admitted(cluster, manifest)
    assert tolerations_of(stored) == []
    assert annotations_of(stored) == {DO_NOT_DISRUPT: "true"}


def test_a_reinvoked_policy_adds_nothing_twice(cluster: KubeClient) -> None:
    manifest = pod(namespace=TRAINING_NAMESPACE, annotations={REWRITE: TOUCHED}, spec=SELECTS_SPOT)
    stored = admitted(cluster, manifest)
    assert "labels" in obj(stored["metadata"])
    assert tolerations_of(stored) == [SPOT_TOLERATION]


def test_a_pod_that_another_policy_sends_to_spot_gets_the_toleration(cluster: KubeClient) -> None:
    manifest = pod(namespace=TRAINING_NAMESPACE, annotations={REWRITE: GIVEN_SPOT})
    assert admitted_tolerations(cluster, manifest) == [SPOT_TOLERATION]


def test_a_spot_pod_loses_the_annotation_that_would_keep_it_from_being_drained(cluster: KubeClient) -> None:
    kept = {"example.com/note": "kept"}
    manifest = pod(
        namespace=TRAINING_NAMESPACE, annotations={DO_NOT_DISRUPT: "true", **kept}, spec=SELECTS_SPOT
    )
    assert annotations_of(admitted(cluster, manifest)) == kept


def test_an_on_demand_pod_keeps_the_annotation(cluster: KubeClient) -> None:
    manifest = pod(namespace=TRAINING_NAMESPACE, annotations={DO_NOT_DISRUPT: "true"})
    assert annotations_of(admitted(cluster, manifest)) == {DO_NOT_DISRUPT: "true"}


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(manifest=pods(TRAINING_NAMESPACE))
def test_any_pod_is_mutated_as_the_rules_define(cluster: KubeClient, manifest: Json) -> None:
    stored = admitted(cluster, manifest)
    assert sorted(tolerations_of(stored), key=str) == sorted(expected_tolerations(manifest, RULES), key=str)
    assert annotations_of(stored) == expected_annotations(manifest, RULES)
