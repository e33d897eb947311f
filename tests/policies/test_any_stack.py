"""Whatever a program registers, the rules give a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from policies.aks_scaling import aks_scaling_findings
from policies.compute_classes import compute_class_findings
from policies.findings import StackResource
from policies.known_values import UNKNOWN
from policies.ladder_end import ladder_end_findings
from scheduling.labels import CAPACITY_TYPE, POOL, TRAINING
from tests.support.aks_stack_resources import aks_cluster, aks_node_pool, aks_pools
from tests.support.gke_stack_resources import compute_class, gke_pools
from tests.support.stack_resources import compliant

if TYPE_CHECKING:
    from policies.known_values import Value

WORDS: tuple[str, ...] = (
    "true",
    "ladder",
    "vision",
    "a100",
    "In",
    "spot",
    "pool",
    "key",
    "values",
    "nodeSelector",
    "nodepools",
    "Auto",
    "Spot",
    "mode",
    CAPACITY_TYPE,
    POOL,
    TRAINING,
)
scalars: st.SearchStrategy[Value] = st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(-2, 2), st.sampled_from(WORDS), st.just(UNKNOWN)
)


def nested(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    """Lists and objects of what is given."""
    lists: st.SearchStrategy[Value] = st.lists(inner, max_size=3)
    return st.one_of(lists, st.dictionaries(st.sampled_from(WORDS), inner, max_size=3))


values: st.SearchStrategy[Value] = st.recursive(scalars, nested, max_leaves=6)


@st.composite
def damaged(draw: st.DrawFn, value: Value) -> Value:
    """The value with anything else in its place, or in the place of something inside it."""
    if draw(st.integers(0, 4)) == 0:
        return draw(values)
    if isinstance(value, Mapping) and value:
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: draw(damaged(value[key]))}
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], draw(damaged(value[index])), *value[index + 1 :]]
    return draw(values)


@st.composite
def damaged_stacks(draw: st.DrawFn) -> list[StackResource]:
    """The compliant stack, with what GKE and AKS have beside it, with damage in some of its resources."""
    on_gke = [*gke_pools(), compute_class({"nodepools": ["a100-spot"]}, {"spot": True})]
    stack = [*compliant(), *on_gke, *aks_pools(), aks_cluster(), aks_node_pool()]
    for index in draw(st.sets(st.integers(0, len(stack) - 1), min_size=1)):
        props = draw(damaged(stack[index].props).filter(lambda found: isinstance(found, Mapping)))
        assert isinstance(props, Mapping), "a resource's properties are an object"
        stack[index] = StackResource(type=stack[index].type, urn=stack[index].urn, props=props)
    return stack


@given(stack=damaged_stacks())
def test_a_malformed_resource_never_breaks_a_rule(stack: list[StackResource]) -> None:
    for finding in (
        *ladder_end_findings(stack),
        *compute_class_findings(stack),
        *aks_scaling_findings(stack),
    ):
        assert finding.message.endswith("."), "a verdict is a sentence"
        assert finding.urn in {resource.urn for resource in stack}, (
            "a verdict is about a resource of the stack"
        )


@given(stack=damaged_stacks())
def test_the_order_of_resources_changes_no_verdict(stack: list[StackResource]) -> None:
    forwards = {(finding.urn, finding.proven) for finding in ladder_end_findings(stack)}
    backwards = {(finding.urn, finding.proven) for finding in ladder_end_findings(stack[::-1])}
    assert forwards == backwards, "resources arrive in the order in which they happen to be registered"
