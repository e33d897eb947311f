"""What the pack fixes where a team asks for it, and what it leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from pulumi.runtime.proto import analyzer_pb2

from holdfast.policies.known_values import UNKNOWN, at
from holdfast.scheduling.labels import CAPACITY_TYPE, GKE_SPOT, POOL, SYSTEM
from tests.support.aks_stack_resources import aks_pool
from tests.support.gke_stack_resources import gke_pool
from tests.support.policy_wire import Pack
from tests.support.stack_resources import NODE_POOL_TYPE, capacity_requirement, namespace, node_pool, resource

if TYPE_CHECKING:
    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value

TAINT = "add-missing-spot-taint"
LABEL = "add-missing-pool-label"
TAINTS = ("spec", "template", "spec", "taints")
LABELS = ("spec", "template", "metadata", "labels")
SPOT = capacity_requirement("spot")
ON_DEMAND = capacity_requirement("on-demand")


def mended(each: StackResource, *wanted: str) -> Value:
    """The resource's properties when these fixes are asked for, None where nothing was to do."""
    pack = Pack()
    pack.configure(dict.fromkeys(wanted, analyzer_pb2.REMEDIATE))
    return cast("Value", pack.mended(each))


def with_taints(name: str, taints: Value) -> StackResource:
    """A spot NodePool with these taints."""
    spec: Value = {"requirements": [SPOT], "taints": taints}
    template: Value = {"metadata": {"labels": {POOL: name}}, "spec": spec}
    return resource(NODE_POOL_TYPE, name, {"metadata": {"name": name}, "spec": {"template": template}})


def test_nothing_is_mended_unless_it_is_asked_for() -> None:
    assert mended(node_pool("a100-spot", SPOT)) is None, "a policy that changes programs is off by default"


def test_a_spot_pool_is_given_the_taint_it_lacks() -> None:
    found = mended(node_pool("a100-spot", SPOT), TAINT)
    assert at(found, *TAINTS) == [{"key": CAPACITY_TYPE, "value": "spot", "effect": "NoSchedule"}], (
        "who does not ask for spot stays away"
    )
    assert at(found, *LABELS, POOL) == "a100-spot", "and nothing else is changed"


def test_a_wish_beside_it_is_kept() -> None:
    wish: Value = {"key": "team", "value": "nlp", "effect": "PreferNoSchedule"}
    found = at(mended(with_taints("a100-spot", [wish]), TAINT), *TAINTS)
    assert isinstance(found, list), "a pool's taints are a list"
    assert found[0] == wish, "what the program says is kept"
    assert len(found) == 2, "a wish keeps nobody away, so the taint is added"


def test_on_gke_the_taint_is_gkes_own() -> None:
    found = mended(gke_pool("a100-spot", spot=True), TAINT)
    assert at(found, "nodeConfig", "taints") == [
        {"key": GKE_SPOT, "value": "true", "effect": "NO_SCHEDULE"}
    ], "as manifests for GKE tolerate it"


@pytest.mark.parametrize(
    ("what", "each"),
    [
        ("a tainted one", with_taints("a100-spot", [{"key": "team", "value": "nlp", "effect": "NoSchedule"}])),
        ("an on-demand pool", node_pool("a100", ON_DEMAND)),
        ("a pool of both", node_pool("a100", capacity_requirement("spot", "on-demand"))),
        ("one that may turn out to be on-demand", node_pool("a100", capacity_requirement(UNKNOWN))),
        ("one whose taints are not known yet", with_taints("a100-spot", UNKNOWN)),
        ("one with a taint that is not known yet", with_taints("a100-spot", [UNKNOWN])),
        ("a pool of AKS, which AKS taints", aks_pool("a100-spot", scaleSetPriority="Spot")),
        ("what is no pool", namespace()),
        ("one whose template is no object", resource(NODE_POOL_TYPE, "x", {"spec": {"template": "none"}})),
        ("one without properties", resource(NODE_POOL_TYPE, "x", {})),
    ],
)  # fmt: skip
def test_no_taint_is_put_on(what: str, each: StackResource) -> None:
    assert mended(each, TAINT) is None, f"{what}: there is nothing to fix, or nothing that is sure"


def test_a_pool_is_given_the_label_it_lacks() -> None:
    found = mended(node_pool("a100", ON_DEMAND, labels={"team": "nlp"}), LABEL)
    assert at(found, *LABELS) == {"team": "nlp", POOL: "a100"}, "jobs select it by its name"


def test_a_pool_without_any_label_is_given_its_own() -> None:
    bare = resource(NODE_POOL_TYPE, "x", {"metadata": {"name": "a100"}, "spec": {"template": {"spec": {}}}})
    assert at(mended(bare, LABEL), *LABELS) == {POOL: "a100"}, "what lies on the way is made"


@pytest.mark.parametrize(
    ("what", "each"),
    [
        ("a labelled one", node_pool("a100", ON_DEMAND)),
        ("one whose labels are not known yet", node_pool("a100", ON_DEMAND, labels=UNKNOWN)),
        ("one that carries operators", node_pool("system", ON_DEMAND, labels={SYSTEM: "true"})),
        ("one that the cloud will name", resource("gcp:container/nodePool:NodePool", "x", {"nodeConfig": {}})),
        ("one without properties", resource(NODE_POOL_TYPE, "x", {})),
    ],
)  # fmt: skip
def test_no_label_is_put_on(what: str, each: StackResource) -> None:
    assert mended(each, LABEL) is None, f"{what}: there is nothing to fix, or nothing that is sure"


def test_what_is_not_known_yet_beside_it_stays_as_it_was_sent() -> None:
    spot = with_taints("a100-spot", [])
    props: dict[str, Value] = {**spot.props, "status": UNKNOWN}
    found = mended(resource(NODE_POOL_TYPE, "a100-spot", props), TAINT, LABEL)
    assert at(found, *TAINTS), "it is mended all the same"
    assert isinstance(at(found, "status"), str), "Pulumi's own mark goes back to the engine"
