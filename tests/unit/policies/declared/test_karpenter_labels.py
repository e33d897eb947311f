"""Which labels the nodes of a NodePool have, as far as its NodePool tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.policies.declared.reading import declared_pools
from holdfast.policies.known_values import UNKNOWN, Value
from holdfast.scheduling.reachability.checks import Undetermined, check_pool
from holdfast.scheduling.reachability.shape import Resources, Shape
from tests.support.stack_resources import node_pool

if TYPE_CHECKING:
    from holdfast.scheduling.reachability.facts import PoolFacts

TEAM = "example.com/team"


def facts(*requirements: Value, labels: Value = None) -> PoolFacts:
    (read,) = declared_pools([node_pool("a100", *requirements, labels=labels)])
    return read.facts


def requirement(operator: Value, *values: Value) -> Value:
    return {"key": TEAM, "operator": operator, "values": list(values)}


def test_a_requirement_of_one_value_is_a_label() -> None:
    assert facts(requirement("In", "vision")).labels == {"holdfast.dev/pool": "a100", TEAM: "vision"}, (
        "every node has it"
    )


@pytest.mark.parametrize(
    "open_requirement",
    [
        requirement("In", "vision", "audio"),
        requirement("In", UNKNOWN),
        requirement("NotIn", "audio"),
        requirement("Exists"),
        requirement(UNKNOWN, "vision"),
    ],
    ids=["several", "unknown", "others", "any", "unknown-operator"],
)
def test_a_requirement_that_leaves_the_value_open_breaks_nothing_for_pods_that_select_one(
    open_requirement: Value,
) -> None:
    job = Shape(requests=Resources(cpu_millis=1000, memory_mib=1024), selector={TEAM: "vision"})
    found = [each for each in check_pool(job, facts(open_requirement)) if each.check == "selector"]
    assert [type(each) for each in found] == [Undetermined], (
        "Karpenter gives a node the value that its pods select"
    )


def test_a_label_says_more_than_a_requirement_of_the_same_key() -> None:
    labels: Value = {"holdfast.dev/pool": "a100", TEAM: "vision"}
    assert facts(requirement("In", "vision", "audio"), labels=labels).labels == labels, "the label is set"


def test_two_requirements_of_one_key_are_not_told_apart() -> None:
    read = facts(requirement("In", "vision"), requirement("NotIn", "vision")).labels
    assert read == {"holdfast.dev/pool": "a100", TEAM: UNKNOWN}, "what both allow is not worked out"


def test_a_label_that_must_not_be_there_is_not() -> None:
    assert facts(requirement("DoesNotExist")).labels == {"holdfast.dev/pool": "a100"}, "no node has it"
