"""No resource makes a rule raise, and no unknown value becomes a violation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pulumi.runtime.proto import analyzer_pb2

from faults import Asked
from pack import RULES
from pack import settings as settings_of
from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.program.namespaces.ladders import ladder_of, training_namespaces
from pulumi_holdfast.program.pools import karpenter
from pulumi_holdfast.program.pools.all_pools import DeclaredPool
from pulumi_holdfast.program.resources import Stack, StackResource, is_fallback_policy
from rule import Finding, Level, Settings
from rules.verdicts import RULE as VERDICTS
from server import evaluate
from tests.support.builders.policy_changes import CHANGES, Change
from tests.support.builders.policy_programs import program, stopping
from tests.support.builders.stack_resources import (
    A100_SPOT,
    NODE_POOL_TYPE,
    aks_cluster,
    aks_node_pool,
    aks_pools,
    capacity_requirement,
    compliant,
    compute_class,
    gke_pools,
    ladder,
    namespace,
    node_pool,
    pools,
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
    on_gke = [*gke_pools(), compute_class({"nodepools": ["a100-spot"]}, {"spot": True})]
    stack = [*compliant(), *on_gke, *aks_pools(), aks_cluster(), aks_node_pool()]
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


def test_ladder_with_which_a_rule_fails_silences_no_other_namespace() -> None:
    def find(resources: Sequence[StackResource], _: Settings) -> Sequence[Finding]:
        ladders = [ladder_of(each).namespace for each in resources if is_fallback_policy(each.type)]
        spaces = [each.name for each in training_namespaces(resources)]
        if "odd" in ladders:
            raise KeyError("odd")
        return [Finding(urn="", message=f"{name}: {name in ladders}") for name in spaces]

    names = ("vision", "odd", "speech")
    stack = Stack([*map(namespace, names), *(ladder(namespace=name) for name in names)])
    asked = Asked(rule=replace(VERDICTS, find=find), settings={})
    messages = [each.message for each in evaluate(stack, [asked])[VERDICTS.name]]
    assert messages[:2] == ["vision: True", "speech: True"]
    assert "so it proves nothing of the namespace of ladder" in messages[2]
    assert len(messages) == 3


def pool_named(name: str) -> StackResource:
    """An on-demand NodePool with its name as the pool label."""
    return node_pool(name, capacity_requirement("on-demand"))


def failing_on(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let every rule that reads the NodePool with this name raise."""
    read = karpenter._pool  # pyright: ignore[reportPrivateUsage] - a fault of our own

    def faulty(
        resource: StackResource, label: str | Unknown | None, resources: Sequence[StackResource]
    ) -> DeclaredPool:
        if resource.logical_name == name:
            raise KeyError("odd")
        return read(resource, label, resources)

    monkeypatch.setattr(karpenter, "_pool", faulty)


def test_pool_with_which_rules_fail_silences_only_the_ladders_that_name_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("vision", "speech", "odd", "later")
    ladders = [
        ladder([{"pool": "a100"}], namespace="vision"),
        ladder([A100_SPOT], namespace="speech"),
        ladder([{"pool": "a100"}, {"pool": "odd"}], namespace="odd"),
        ladder(UNKNOWN, namespace="later"),
    ]
    urns = [f"{each.urn}-{name}" for each, name in zip(ladders, names, strict=True)]
    own = [replace(each, urn=urn) for each, urn in zip(ladders, urns, strict=True)]
    stack = [*map(namespace, names), *own, *pools(), pool_named("odd")]
    failing_on(monkeypatch, "odd")
    found = Pack().violations(stack)
    verdicts = [each.message for each in found if each.rule == "training-verdicts"]
    assert any(each.startswith("namespace 'vision': ") for each in verdicts)
    (stops,) = [
        each for each in found if each.rule == "training-ladder-ends-on-demand" and each.urn == urns[1]
    ]
    assert "namespace 'speech'" in stops.message
    failed = [
        each for each in found if each.rule == "training-ladder-ends-on-demand" and "failed" in each.message
    ]
    about = sorted(each.message.partition("proves nothing ")[2].partition(":")[0] for each in failed)
    assert about == [
        "of 'odd'",
        "of the namespace of ladder 'vision-ladder-later'",
        "of the namespace of ladder 'vision-ladder-odd'",
    ]
    assert {each.level for each in failed} == {analyzer_pb2.MANDATORY}
    let_pass = Pack()
    let_pass.configure({}, {"stopOnFault": False}, of="training-verdicts")
    stopping = {each.message for each in let_pass.violations(stack) if each.level == analyzer_pb2.MANDATORY}
    assert not any("failed" in each for each in stopping)
    assert any("namespace 'speech'" in each for each in stopping)


def test_pool_left_out_by_a_fault_makes_no_platform_rule_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    resources = program("aws-prod")
    assert "default-pool-exists" not in stopping(resources, strict=True)
    failing_on(
        monkeypatch,
        next(
            each.logical_name for each in resources if "cpu" in each.logical_name and "NodePool" in each.type
        ),
    )
    found = stopping(resources, strict=True).get("default-pool-exists", [])
    assert all("failed" in each for each in found)


def test_rule_that_fails_with_every_pool_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(resources: Sequence[StackResource], _: Settings) -> Sequence[Finding]:
        if any(each.type == NODE_POOL_TYPE for each in resources):
            raise KeyError("odd")
        return []

    asked = Asked(rule=replace(VERDICTS, find=find), settings={})
    stack = Stack(pool_named(f"pool-{number}") for number in range(40))
    (told,) = evaluate(stack, [asked])[VERDICTS.name]
    assert "so it proves nothing here" in told.message
