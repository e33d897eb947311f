"""A pod fits a node for the same reasons as the scheduler's."""

import pytest

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.cluster_autoscaler.scale_up import obstacle
from tests.support.autoscaling_objects import SPOT_TAINT, needs, room

UNSELECTED = "node(s) didn't match Pod's node affinity/selector"


def test_a_pod_that_asks_for_nothing_fits_a_plain_node() -> None:
    assert obstacle(needs(), room()) is None, "nothing is in the way"


def test_a_pod_that_asks_for_nothing_stays_off_spot() -> None:
    told = obstacle(needs(), room(taints=(SPOT_TAINT,)))
    assert told == "node(s) had untolerated taint {cloud.google.com/gke-spot: true}", "the taint says so"


@pytest.mark.parametrize(
    ("toleration", "is_let_in"),
    [
        (
            {
                "key": "cloud.google.com/gke-spot",
                "operator": "Equal",
                "value": "true",
                "effect": "NoSchedule",
            },
            True,
        ),
        ({"key": "cloud.google.com/gke-spot", "value": "true"}, True),
        ({"key": "cloud.google.com/gke-spot", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "false"}, False),
        ({"key": "cloud.google.com/gke-spot", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, False),
    ],
)
def test_a_toleration_lets_in_whom_kubernetes_lets_in(toleration: Json, is_let_in: bool) -> None:
    found = obstacle(needs(tolerations=(toleration,)), room(taints=(SPOT_TAINT,)))
    assert (found is None) is is_let_in, f"{toleration}: {found}"


def test_a_taint_that_only_prefers_keeps_nobody_away() -> None:
    taint: Json = {"key": "k", "effect": "PreferNoSchedule"}
    assert obstacle(needs(), room(taints=(taint,))) is None, "it is a wish"


def test_every_selected_label_must_be_there() -> None:
    pod = needs(selector={"a": "1", "b": "2"})
    assert obstacle(pod, room(labels={"a": "1", "b": "2", "c": "3"})) is None, "all are"
    assert obstacle(pod, room(labels={"a": "1"})) == UNSELECTED, "one is not"


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ({"key": "a", "operator": "In", "values": ["1", "2"]}, True),
        ({"key": "a", "operator": "In", "values": ["2"]}, False),
        ({"key": "a", "operator": "NotIn", "values": ["2"]}, True),
        ({"key": "x", "operator": "NotIn", "values": ["2"]}, True),
        ({"key": "a", "operator": "NotIn", "values": ["1"]}, False),
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "x", "operator": "Exists"}, False),
        ({"key": "x", "operator": "DoesNotExist"}, True),
        ({"key": "a", "operator": "DoesNotExist"}, False),
        ({"key": "a", "operator": "Gt", "values": ["0"]}, True),
        ({"key": "a", "operator": "Gt", "values": ["1"]}, False),
        ({"key": "a", "operator": "Lt", "values": ["2"]}, True),
        ({"key": "x", "operator": "Lt", "values": ["2"]}, False),
        ({"key": "a", "operator": "Resembles", "values": ["1"]}, False),
    ],
)
def test_a_rule_of_an_affinity_holds_as_in_kubernetes(rule: Json, holds: bool) -> None:
    found = obstacle(needs(terms=({"matchExpressions": [rule]},)), room(labels={"a": "1"}))
    assert (found is None) is holds, f"{rule}: {found}"


def _term(*rules: JsonValue, **more: JsonValue) -> Json:
    return {"matchExpressions": list(rules), **more}


def test_one_term_must_hold_and_all_of_its_rules() -> None:
    has, lacks = {"key": "a", "operator": "Exists"}, {"key": "x", "operator": "Exists"}
    assert obstacle(needs(terms=(_term(lacks), _term(has))), room(labels={"a": "1"})) is None, (
        "the second does"
    )
    assert obstacle(needs(terms=(_term(has, lacks),)), room(labels={"a": "1"})) == UNSELECTED, (
        "half a term does not"
    )
    named = _term(has, matchFields=[{"key": "metadata.name", "operator": "In", "values": ["n"]}])
    assert obstacle(needs(terms=(named,)), room(labels={"a": "1"})) == UNSELECTED, (
        "no node is bought by its name"
    )


def test_what_is_short_is_named() -> None:
    pod = needs(cpu=5, requests={**needs(cpu=5).requests, "nvidia.com/gpu": needs().requests["cpu"]})
    assert obstacle(pod, room()) == "Insufficient cpu, Insufficient nvidia.com/gpu", "both are"


def test_a_node_has_less_room_for_the_second_pod() -> None:
    left = room(cpu=4).without(needs(cpu=3).requests)
    assert obstacle(needs(cpu=1), left) is None, "one CPU is left"
    assert obstacle(needs(cpu=2), left) == "Insufficient cpu", "two are not"
