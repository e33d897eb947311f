"""What a Karpenter NodePool says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from components.pools.node_class import KWOK
from components.pools.node_pool import node_pool_spec
from scheduling.labels import CapacityType
from tests.support.builders import machine, pool
from tests.support.inputs import mapping, objects, text, value

if TYPE_CHECKING:
    from scheduling.json import Json
    from scheduling.pools import Pool

GPU_MACHINES = (machine("p4d.24xlarge", vcpus=96, gpus=8), machine("g6.12xlarge", vcpus=48, gpus=4))


def spec(made: Pool | None = None) -> Json:
    facts = made or pool()
    return node_pool_spec(facts, GPU_MACHINES if facts.has_gpus else (machine(),), KWOK, facts.name, 7)


def requirement(document: Json, key: str) -> Json:
    found = [each for each in objects(document, "template", "spec", "requirements") if each["key"] == key]
    assert len(found) == 1, f"{key} is required once"
    return found[0]


@pytest.mark.parametrize("capacity", list(CapacityType))
def test_a_pool_buys_one_capacity_type(capacity: CapacityType) -> None:
    required = requirement(spec(pool(capacity=capacity)), "karpenter.sh/capacity-type")
    assert (required["operator"], list(objects(required, "values"))) == ("In", [capacity.value]), (
        "with both, its on-demand nodes would carry the spot taint too"
    )


def test_a_pool_buys_the_machines_listed_and_no_others() -> None:
    required = requirement(spec(pool(has_gpus=True)), "node.kubernetes.io/instance-type")
    assert list(objects(required, "values")) == ["p4d.24xlarge", "g6.12xlarge"], (
        "Karpenter takes the cheapest of these"
    )


def test_a_gpu_pool_on_spot_has_both_taints() -> None:
    taints = objects(spec(pool(capacity=CapacityType.SPOT, has_gpus=True)), "template", "spec", "taints")
    assert [taint["key"] for taint in taints] == ["karpenter.sh/capacity-type", "nvidia.com/gpu"], (
        "neither a pod that wants no spot nor one without GPUs may land there"
    )


def test_nodes_are_labelled_with_their_pool() -> None:
    labels = mapping(spec(pool("a100")), "template", "metadata", "labels")
    assert labels == {"holdfast.dev/pool": "a100"}, "the single key by which tiers are selected"


def test_limits_hold_the_number_of_nodes_and_what_they_could_add_up_to() -> None:
    limits = mapping(spec(pool(has_gpus=True, max_nodes=4)), "limits")
    assert limits == {"nodes": "4", "cpu": "384", "nvidia.com/gpu": "32"}, "four of the largest machine"


def test_a_pool_without_gpus_limits_none() -> None:
    limits = mapping(spec(pool(max_nodes=4)), "limits")
    assert limits == {"nodes": "4", "cpu": "16"}, "a limit of 0 GPUs would say something about GPUs"


def test_a_pool_has_the_rank_it_was_given() -> None:
    assert value(spec(pool()), "weight") == 7, "the rank among all pools is not one pool's to decide"


def test_running_pods_are_never_moved_for_price_or_drift() -> None:
    disruption = mapping(spec(), "disruption")
    assert disruption["consolidationPolicy"] == "WhenEmpty", "a node is given back when nothing runs on it"
    budgets = objects(disruption, "budgets")
    none = [budget for budget in budgets if budget["nodes"] == "0"]
    assert [list(objects(budget, "reasons")) for budget in none] == [["Drifted", "Underutilized"]], (
        "a move costs every step since the last checkpoint"
    )


def test_empty_nodes_are_still_given_back() -> None:
    budgets = objects(spec(), "disruption", "budgets")
    assert {"nodes": "100%", "reasons": ["Empty"]} in budgets, "written budgets replace the default one"


def test_a_node_does_not_expire_but_ends_in_finite_time() -> None:
    node = mapping(spec(), "template", "spec")
    assert node["expireAfter"] == "Never", "Karpenter's default would end training after 30 days"
    assert text(node, "terminationGracePeriod").endswith("m"), (
        "without it, one blocked eviction keeps a node for ever"
    )


def test_the_node_class_is_the_one_of_the_pool() -> None:
    reference = mapping(spec(pool("a100")), "template", "spec", "nodeClassRef")
    assert reference == {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "a100"}, (
        "both are made together under one name"
    )
