"""Whatever a program registers, every rule gives a verdict, and an unknown never turns into a violation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.policies.pack import RULES
from holdfast.policies.pack import settings as settings_of
from holdfast.policies.resources import Stack
from holdfast.policies.rule import Level
from holdfast.policies.rules.policy_inputs import RULE as READING
from holdfast.policies.server import evaluate
from holdfast.scheduling.json import UNKNOWN
from tests.support.aks_stack_resources import aks_cluster, aks_node_pool, aks_pools
from tests.support.gke_stack_resources import compute_class, gke_pools
from tests.support.policy_changes import CHANGES
from tests.support.policy_damage import damaged, damaged_programs, hidden
from tests.support.policy_programs import program
from tests.support.policy_wire import Pack
from tests.support.stack_resources import (
    A100,
    A100_SPOT,
    FALLBACK_POLICY_TYPE,
    NODE_POOL_TYPE,
    compliant,
    resource,
    with_ladder,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.resources import StackResource
    from holdfast.policies.rule import Finding
    from tests.support.policy_changes import Change

MANDATORY = {rule.name for rule in RULES if rule.level is Level.MANDATORY}


def judged(stack: Sequence[StackResource]) -> Mapping[str, Sequence[Finding]]:
    """What each rule says, those that say nothing left out. A rule that raises is not caught."""
    resources = Stack(stack)
    found = {rule.name: rule.find(resources, settings_of(rule, None)) for rule in RULES}
    return {name: said for name, said in found.items() if said}


@st.composite
def damaged_clouds(draw: st.DrawFn) -> list[StackResource]:
    """A small stack with what GKE and AKS have beside it, with damage in some of its resources."""
    on_gke = [*gke_pools(), compute_class({"nodepools": ["a100-spot"]}, {"spot": True})]
    stack = [*compliant(), *on_gke, *aks_pools(), aks_cluster(), aks_node_pool()]
    for index in draw(st.sets(st.integers(0, len(stack) - 1), min_size=1)):
        props = draw(damaged(stack[index].props).filter(lambda found: isinstance(found, Mapping)))
        assert isinstance(props, Mapping), "a resource's properties are an object"
        stack[index] = replace(stack[index], props=props)
    return stack


@settings(deadline=None)
@given(stack=st.one_of(damaged_clouds(), damaged_programs()))
def test_a_malformed_resource_never_breaks_a_rule(stack: list[StackResource]) -> None:
    urns = {each.urn for each in stack}
    for rule, findings in judged(stack).items():
        for finding in findings:
            assert finding.message.endswith("."), f"{rule}: a verdict is a sentence: {finding.message}"
            assert finding.urn in urns, f"{rule}: a verdict is about a resource of the stack"


@settings(deadline=None)
@given(stack=st.one_of(damaged_clouds(), damaged_programs()))
def test_the_order_of_resources_changes_no_verdict(stack: list[StackResource]) -> None:
    forwards, backwards = judged(stack), judged(stack[::-1])
    assert forwards.keys() == backwards.keys(), "resources arrive in the order in which they are registered"


CASES = st.sampled_from([(change, stack) for change in CHANGES for stack in change.stacks])


@settings(deadline=None)
@given(case=CASES, data=st.data())
def test_what_is_proven_while_something_is_unknown_holds_when_it_is_known(
    case: tuple[Change, str], data: st.DataObject
) -> None:
    """Each rule's own property: a value that is hidden can silence a rule, and never make it stop a run."""
    change, name = case
    resources = program(name)
    if data.draw(st.booleans(), label="broken"):
        change.apply(resources)
    known = judged(resources).keys() & MANDATORY
    proven = judged(data.draw(hidden(resources))).keys() & MANDATORY
    assert proven <= known, f"{proven - known} would stop a preview for what only the update will know"


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change.rule}: {change.what}")
def test_an_unknown_beside_a_violation_hides_nothing(change: Change) -> None:
    resources = program(change.stacks[0])
    change.apply(resources)
    beside = resource("kubernetes:core/v1:ConfigMap", "late", {"metadata": UNKNOWN, "data": UNKNOWN})
    late = resource("aws:s3/bucket:Bucket", "late", {"bucket": UNKNOWN, "tags": {"team": UNKNOWN}})
    said = {each.rule for each in Pack().violations([beside, *resources, late])}
    assert change.rule in said, "the SDK would have turned the whole rule into advice"


@pytest.mark.parametrize(
    ("what", "stack", "told"),
    [
        ("a NodePool without properties", [*compliant(), resource(NODE_POOL_TYPE, "x", {})], "no properties"),
        ("a NodePool without a template", [*compliant(), resource(NODE_POOL_TYPE, "x", {"spec": {}})], "spec.template"),
        ("a NodePool of another version", [*compliant(), resource("kubernetes:karpenter.sh/v1beta1:NodePool", "x", {"spec": {"template": {}}})], "v1beta1"),
        ("requirements that are no list", [*compliant(), resource(NODE_POOL_TYPE, "x", {"spec": {"template": {"spec": {"requirements": "any"}}}})], "requirements"),
        ("a requirement that is none", [*compliant(), resource(NODE_POOL_TYPE, "x", {"spec": {"template": {"spec": {"requirements": [7]}}}})], "requirements[0]"),
        ("an operator that nobody knows", [*compliant(), resource(NODE_POOL_TYPE, "x", {"spec": {"template": {"spec": {"requirements": [{"key": "a", "operator": "Like", "values": []}]}}}})], "requirements[0]"),
        ("a taint that is none", [*compliant(), resource(NODE_POOL_TYPE, "x", {"spec": {"template": {"spec": {"taints": ["spot"]}}}})], "taints[0]"),
        ("a limit that is none", [*compliant(), resource(NODE_POOL_TYPE, "x", {"spec": {"template": {}, "limits": {"cpu": "lots"}}})], "'lots'"),
        ("a ladder without properties", [*compliant(), resource(FALLBACK_POLICY_TYPE, "x", {})], "no properties"),
        ("a ladder of another version", [*compliant(), resource("kubernetes:holdfast.dev/v7:FallbackPolicy", "x", {"spec": {"tiers": []}})], "v7"),
        ("a ladder with the same pool twice", with_ladder(A100_SPOT, A100_SPOT, A100), "tier 1 already"),
        ("a ladder that goes in a circle", with_ladder(A100_SPOT, A100, A100_SPOT, A100), "comes back to pool 'a100-spot' in tier 3"),
        ("tiers that are none", with_ladder("a100-spot", A100), "spec.tiers[0]"),
        ("failures that are no number", with_ladder({**A100_SPOT, "maxFailures": "many"}, A100), "'many'"),
        ("a shape with an amount that is none", [resource(FALLBACK_POLICY_TYPE, "x", {"spec": {"tiers": [A100], "shapes": [{"cpu": "lots"}]}})], "`cpu`"),
        ("tolerations that are no JSON", [resource("kubernetes:admissionregistration.k8s.io/v1:MutatingAdmissionPolicy", "x", {"metadata": {"annotations": {"holdfast.dev/tolerates": "{"}}})], "names no taint"),
        ("taints of GKE that are no list", [resource("gcp:container/nodePool:NodePool", "x", {"nodeConfig": {"taints": "spot"}})], "nodeConfig.taints"),
        ("a taint of AKS that is none", [resource("azure-native:containerservice:AgentPool", "x", {"nodeTaints": ["spot"]})], "nodeTaints[0]"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(what: str, stack: Sequence[StackResource], told: str) -> None:
    messages = [each.message for each in judged(stack).get(READING.name, ())]
    assert any(told in message for message in messages), f"{what} is passed over in silence: {messages}"
    assert READING.level is Level.ADVISORY, f"{what} stops nobody's preview by itself"


@pytest.mark.parametrize("what", ["spec", "metadata"])
def test_what_is_not_known_yet_is_not_called_unreadable(what: str) -> None:
    stack = [replace(each, props={**each.props, what: UNKNOWN}) for each in compliant()]
    assert READING.name not in judged(stack), "the update will know"


def test_nothing_of_the_repositorys_own_stacks_is_unreadable() -> None:
    for name in ("local", "aws-prod", "azure-prod", "gcp-prod"):
        found = judged(program(name)).get(READING.name, ())
        assert not found, f"{name}: {found}"


def test_a_stack_of_nothing_breaks_no_rule() -> None:
    asked = [(rule, settings_of(rule, None)) for rule in RULES]
    assert not any(evaluate(Stack(), asked).values()), "a program may register nothing at all"
