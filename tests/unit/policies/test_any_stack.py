"""No resource makes a rule raise, and no unknown value becomes a violation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pack import RULES
from pack import settings as settings_of
from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.resources import Stack, StackResource
from rule import Asked, Finding, Level
from server import evaluate
from tests.support.builders.policy_changes import CHANGES, Change
from tests.support.builders.policy_programs import program
from tests.support.builders.stack_resources import (
    aks_cluster,
    aks_node_pool,
    aks_pools,
    compliant,
    gke_pools,
    resource,
)
from tests.support.fakes.policy_engine import Pack
from tests.support.soak import sized
from tests.support.strategies.damaged_stacks import damaged, damaged_programs, hidden

MANDATORY = [rule for rule in RULES if (rule.strict or rule.level) is Level.MANDATORY]


def findings(stack: Sequence[StackResource]) -> Mapping[str, Sequence[Finding]]:
    """The findings of each rule that has any. A rule that raises is not caught."""
    resources = Stack(stack)
    found = {rule.name: rule.find(resources, settings_of(rule, None)) for rule in RULES}
    return {name: listed for name, listed in found.items() if listed}


def proven_violations(stack: Sequence[StackResource]) -> set[str]:
    """The rules that stop a preview of the stack in the profile `strict`."""
    resources = Stack(stack)
    return {
        rule.name
        for rule in MANDATORY
        if any(each.proven for each in rule.find(resources, settings_of(rule, None)))
    }


@st.composite
def damaged_clouds(draw: st.DrawFn) -> list[StackResource]:
    """A small stack with pools of GKE and AKS, some of whose resources are malformed."""
    stack = [*compliant(), *gke_pools(), *aks_pools(), aks_cluster(), aks_node_pool()]
    for index in draw(st.sets(st.integers(0, len(stack) - 1), min_size=1)):
        props = draw(damaged(stack[index].props).filter(lambda found: isinstance(found, Mapping)))
        assert isinstance(props, Mapping)
        stack[index] = replace(stack[index], props=props)
    return stack


# The first draws compose the stacks, which takes long on a loaded machine.
@settings(max_examples=sized(25, soak=1000), suppress_health_check=[HealthCheck.too_slow])
@given(stack=st.one_of(damaged_clouds(), damaged_programs()))
def test_malformed_resource_makes_no_rule_raise_in_any_order(stack: list[StackResource]) -> None:
    urns = {each.urn for each in stack}
    forwards, backwards = findings(stack), findings(stack[::-1])
    for rule, found in forwards.items():
        for finding in found:
            assert finding.message.endswith("."), f"{rule}: the message is a sentence: {finding.message}"
            assert finding.urn in urns, f"{rule}: the finding is about a resource of the stack"
    assert forwards.keys() == backwards.keys()


CASES = st.sampled_from([(change, stack) for change in CHANGES for stack in change.stacks])


@settings(max_examples=sized(25, soak=1000))
@given(case=CASES, data=st.data())
def test_proven_violation_with_unknown_values_holds_when_they_are_known(
    case: tuple[Change, str], data: st.DataObject
) -> None:
    change, name = case
    resources = program(name)
    if data.draw(st.booleans(), label="broken"):
        change.apply(resources)
    known = proven_violations(resources)
    proven = proven_violations(data.draw(hidden(resources)))
    assert proven <= known


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change.rule}: {change.what}")
def test_unknown_value_beside_a_violation_does_not_hide_it(change: Change) -> None:
    resources = program(change.stacks[0])
    change.apply(resources)
    beside = resource("kubernetes:core/v1:ConfigMap", "late", {"metadata": UNKNOWN, "data": UNKNOWN})
    late = resource("aws:s3/bucket:Bucket", "late", {"bucket": UNKNOWN, "tags": {"team": UNKNOWN}})
    pack = Pack()
    pack.configure({}, {"madeHere": ["pools"]}, of="training-verdicts")
    reported = {each.rule for each in pack.violations([beside, *resources, late])}
    assert change.rule in reported, "the SDK would have turned the whole rule into advice"


def test_stack_of_nothing_has_no_findings() -> None:
    asked = [Asked(rule=rule, settings=settings_of(rule, None)) for rule in RULES]
    assert not any(evaluate(Stack(), asked).values())
