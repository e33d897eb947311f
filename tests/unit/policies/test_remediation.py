from typing import cast

import pytest
from pulumi.runtime.proto import analyzer_pb2

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, GKE_SPOT, POOL, SYSTEM
from pulumi_holdfast.program.resources import StackResource, Value, at, is_list
from tests.support.builders.stack_resources import (
    NODE_POOL_TYPE,
    aks_pool,
    capacity_requirement,
    gke_pool,
    namespace,
    node_pool,
    resource,
)
from tests.support.fakes.policy_engine import Pack

TAINT = "add-missing-spot-taint"
LABEL = "add-missing-pool-label"
TAINTS = ("spec", "template", "spec", "taints")
LABELS = ("spec", "template", "metadata", "labels")
SPOT = capacity_requirement("spot")
ON_DEMAND = capacity_requirement("on-demand")


def remediated(each: StackResource, *enabled: str) -> Value:
    """The resource's properties with these remediations enabled; None if they change nothing."""
    pack = Pack()
    pack.configure(dict.fromkeys(enabled, analyzer_pb2.REMEDIATE))
    return cast("Value", pack.remediated(each))


def with_taints(name: str, taints: Value) -> StackResource:
    """A spot NodePool with these taints."""
    spec: Value = {"requirements": [SPOT], "taints": taints}
    template: Value = {"metadata": {"labels": {POOL: name}}, "spec": spec}
    return resource(NODE_POOL_TYPE, name, {"metadata": {"name": name}, "spec": {"template": template}})


def test_remediations_are_disabled_by_default() -> None:
    assert remediated(node_pool("a100-spot", SPOT)) is None


def test_taint_is_added_to_a_spot_pool_without_one() -> None:
    found = remediated(node_pool("a100-spot", SPOT), TAINT)
    assert at(found, *TAINTS) == [{"key": CAPACITY_TYPE, "value": "spot", "effect": "NoSchedule"}]
    assert at(found, *LABELS, POOL) == "a100-spot"


def test_existing_prefer_no_schedule_taint_is_kept() -> None:
    preference: Value = {"key": "team", "value": "nlp", "effect": "PreferNoSchedule"}
    found = at(remediated(with_taints("a100-spot", [preference]), TAINT), *TAINTS)
    assert isinstance(found, list)
    assert found[0] == preference
    assert len(found) == 2


@pytest.mark.parametrize(
    ("pool", "path", "key"),
    [
        (gke_pool("a100-spot", spot=True), ("nodeConfig", "taints"), GKE_SPOT),
        (resource("aws:eks/nodeGroup:NodeGroup", "a100-spot", {"labels": {POOL: "a100-spot"}, "capacityType": "SPOT"}), ("taints",), CAPACITY_TYPE),
    ],
)  # fmt: skip
def test_taint_of_a_cloud_pool_is_spelled_as_the_cloud_does(
    pool: StackResource, path: tuple[str, ...], key: str
) -> None:
    taints = at(remediated(pool, TAINT), *path)
    assert is_list(taints)
    (taint,) = taints
    assert (at(taint, "key"), at(taint, "effect")) == (key, "NO_SCHEDULE")


@pytest.mark.parametrize(
    ("what", "each"),
    [
        ("a tainted pool", with_taints("a100-spot", [{"key": "team", "value": "nlp", "effect": "NoSchedule"}])),
        ("an on-demand pool", node_pool("a100", ON_DEMAND)),
        ("a pool of both", node_pool("a100", capacity_requirement("spot", "on-demand"))),
        ("a pool that may be on-demand", node_pool("a100", capacity_requirement(UNKNOWN))),
        ("unknown taints", with_taints("a100-spot", UNKNOWN)),
        ("one unknown taint", with_taints("a100-spot", [UNKNOWN])),
        ("a pool of AKS, which AKS taints", aks_pool("a100-spot", scaleSetPriority="Spot")),
        ("not a pool", namespace()),
        ("a template that is not an object", resource(NODE_POOL_TYPE, "x", {"spec": {"template": "none"}})),
        ("no properties", resource(NODE_POOL_TYPE, "x", {})),
    ],
)  # fmt: skip
def test_taint_is_not_added(what: str, each: StackResource) -> None:
    assert remediated(each, TAINT) is None, f"{what}: nothing is missing, or it is not certain"


def test_label_is_added_to_a_pool_without_it() -> None:
    found = remediated(node_pool("a100", ON_DEMAND, labels={"team": "nlp"}), LABEL)
    assert at(found, *LABELS) == {"team": "nlp", POOL: "a100"}
    bare = resource(NODE_POOL_TYPE, "x", {"metadata": {"name": "a100"}, "spec": {"template": {"spec": {}}}})
    assert at(remediated(bare, LABEL), *LABELS) == {POOL: "a100"}


@pytest.mark.parametrize(
    ("what", "each"),
    [
        ("a labelled pool", node_pool("a100", ON_DEMAND)),
        ("unknown labels", node_pool("a100", ON_DEMAND, labels=UNKNOWN)),
        ("a pool for operators", node_pool("system", ON_DEMAND, labels={SYSTEM: "true"})),
        ("a pool that the cloud names", resource("gcp:container/nodePool:NodePool", "x", {"nodeConfig": {}})),
        ("no properties", resource(NODE_POOL_TYPE, "x", {})),
    ],
)  # fmt: skip
def test_label_is_not_added(what: str, each: StackResource) -> None:
    assert remediated(each, LABEL) is None, f"{what}: nothing is missing, or it is not certain"


def test_unknown_values_are_returned_unchanged() -> None:
    spot = with_taints("a100-spot", [])
    props: dict[str, Value] = {**spot.props, "status": UNKNOWN}
    found = remediated(resource(NODE_POOL_TYPE, "a100-spot", props), TAINT, LABEL)
    assert at(found, *TAINTS)
    assert isinstance(at(found, "status"), str)
