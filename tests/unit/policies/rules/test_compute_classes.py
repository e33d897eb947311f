import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import COMPUTE_CLASS, GKE_PROVISIONING, GKE_SPOT, POOL
from pulumi_holdfast.program.resources import StackResource, Value
from rule import Finding
from rules import compute_classes
from tests.support.builders.stack_resources import (
    COMPUTE_CLASS_TYPE,
    compliant,
    compute_class,
    gke_pool,
    gke_pools,
    resource,
)

CLASS_OF_SPOT = compute_class({"nodepools": ["a100-spot", "h100-spot"]})


def findings(resources: list[StackResource]) -> tuple[Finding, ...]:
    return compute_classes.find(resources, {})


def job(selector: Value) -> StackResource:
    """A JobSet whose pods have a node selector."""
    pod: Value = {"spec": {"nodeSelector": selector, "containers": [{"name": "train"}]}}
    template: Value = {"spec": {"template": pod}}
    spec: Value = {"replicatedJobs": [{"name": "workers", "template": template}]}
    return resource("kubernetes:jobset.x-k8s.io/v1alpha2:JobSet", "train", {"spec": spec})


@pytest.mark.parametrize(
    ("what", "resources"),
    [
        ("no class at all", compliant()),
        ("a class of spot pools", [*gke_pools(), gke_pool("h100-spot", spot=True), CLASS_OF_SPOT]),
        ("a class of spot machines", [compute_class({"machineFamily": "n2", "spot": True})]),
        ("a class of machines on demand", [compute_class({"machineFamily": "n2"}, {"machineFamily": "c3", "spot": False})]),
        ("a class of pools that another program makes", [compute_class({"nodepools": ["theirs"]})]),
        ("a pool whose kind is not known yet", [gke_pool("late", spot=UNKNOWN), gke_pool("a100"), compute_class({"nodepools": ["late", "a100"]})]),
        ("priorities that are not known yet", [resource(COMPUTE_CLASS_TYPE, "late", {"spec": UNKNOWN})]),
        ("priorities that are none", [compute_class("n2")]),
        ("pods that select a class", [job({COMPUTE_CLASS: "gpus", "topology.kubernetes.io/zone": "a"})]),
        ("pods that select spot", [job({GKE_SPOT: "true", GKE_PROVISIONING: "spot"})]),
        ("pods that select a pool", [job({POOL: "a100", GKE_SPOT: "true"})]),
        ("pods whose selector is not known yet", [job(UNKNOWN)]),
    ],
)  # fmt: skip
def test_valid_classes_and_selectors_pass(what: str, resources: list[StackResource]) -> None:
    assert findings(resources) == (), f"{what}: no finding"


@pytest.mark.parametrize(
    ("what", "resources"),
    [
        ("pools of both kinds", [*gke_pools(), compute_class({"nodepools": ["a100-spot"]}, {"nodepools": ["a100"]})]),
        ("one priority of both", [*gke_pools(), compute_class({"nodepools": ["a100-spot", "a100"]})]),
        ("machines of both kinds", [compute_class({"spot": True}, {"spot": False})]),
        ("spot, and what is not said to be", [compute_class({"spot": True}, {"machineFamily": "n2"})]),
    ],
)  # fmt: skip
def test_class_of_both_capacity_types_is_a_violation(what: str, resources: list[StackResource]) -> None:
    (finding,) = findings(resources)
    assert "'gpus' has priorities of on-demand and spot nodes" in finding.message, what
    assert finding.urn == resources[-1].urn


@pytest.mark.parametrize(
    ("beside", "named"),
    [
        ({GKE_SPOT: "true"}, GKE_SPOT),
        ({GKE_PROVISIONING: "spot"}, GKE_PROVISIONING),
        ({GKE_SPOT: "true", GKE_PROVISIONING: "spot"}, f"{GKE_SPOT} and {GKE_PROVISIONING}"),
    ],
)
def test_pods_that_select_a_class_and_spot_are_a_violation(beside: dict[str, Value], named: str) -> None:
    (finding,) = findings([job({COMPUTE_CLASS: "gpus", **beside})])
    assert f"'train' selects nodes by {COMPUTE_CLASS} and by {named}, which GKE rejects" in finding.message
