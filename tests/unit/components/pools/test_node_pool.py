"""What a Karpenter NodePool says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.components.pools.karpenter import KWOK, node_pool_spec
from holdfast.scheduling.labels import CapacityType
from tests.support.builders.configurations import machine, pool
from tests.support.inputs import mapping, objects, text, value

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holdfast.scheduling.json import Json
    from holdfast.scheduling.machines import Machine
    from holdfast.scheduling.pools import Pool

GPU_MACHINES = (machine("p4d.24xlarge", vcpus=96, gpus=8), machine("g6.12xlarge", vcpus=48, gpus=4))


def spec(
    made: Pool | None = None,
    *,
    machines: Sequence[Machine] = (),
    zones: Collection[str] = (),
    efa: bool = False,
    roll_out: bool = False,
) -> Json:
    facts = made or pool()
    bought = machines or (GPU_MACHINES if facts.has_gpus else (machine(),))
    return node_pool_spec(facts, bought, KWOK, facts.name, 7, zones=zones, efa=efa, roll_out=roll_out)


def budgets(document: Json) -> dict[str, str]:
    """How many nodes may go at once, by the reason for it."""
    found: dict[str, str] = {}
    for budget in objects(document, "disruption", "budgets"):
        for reason in cast("Sequence[str]", budget["reasons"]):
            assert reason not in found, f"{reason} stands in two budgets"
            found[reason] = text(budget, "nodes")
    return found


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


def test_a_pool_keeps_to_the_zones_it_is_given() -> None:
    required = requirement(spec(zones=("us-east-1a", "us-east-1b")), "topology.kubernetes.io/zone")
    assert list(objects(required, "values")) == ["us-east-1a", "us-east-1b"], (
        "and to no other of the network's"
    )


def test_a_pool_without_zones_is_at_home_in_all_of_them() -> None:
    keys = [each["key"] for each in objects(spec(), "template", "spec", "requirements")]
    assert "topology.kubernetes.io/zone" not in keys, "its node class says where it can go"


def test_a_pool_buys_the_architecture_of_its_machines() -> None:
    graviton = (replace(machine("m7g.xlarge"), arch="arm64"),)
    required = requirement(spec(machines=graviton), "kubernetes.io/arch")
    assert list(objects(required, "values")) == ["arm64"], "a pool of these alone could buy nothing otherwise"


def test_nodes_are_labelled_with_their_pool() -> None:
    labels = mapping(spec(pool("a100")), "template", "metadata", "labels")
    assert labels == {"holdfast.dev/pool": "a100"}, "the single key by which tiers are selected"


def test_nodes_with_gpus_are_labelled_for_their_device_plugin() -> None:
    labels = mapping(spec(pool(has_gpus=True)), "template", "metadata", "labels")
    assert labels["nvidia.com/gpu.present"] == "true", "it goes where it is told that there are GPUs"


def test_nodes_with_fabric_adapters_are_labelled_for_theirs() -> None:
    labels = mapping(spec(pool(has_gpus=True), efa=True), "template", "metadata", "labels")
    assert labels["holdfast.dev/efa"] == "true", "a machine that could have an adapter need not have one"


def test_limits_name_the_number_of_nodes_and_what_as_many_of_the_largest_machine_hold() -> None:
    limits = mapping(spec(pool(has_gpus=True, max_nodes=4)), "limits")
    assert limits == {"nodes": "4", "cpu": "384", "nvidia.com/gpu": "32"}, "four of the largest machine"


def test_a_pool_without_gpus_limits_none() -> None:
    limits = mapping(spec(pool(max_nodes=4)), "limits")
    assert limits == {"nodes": "4", "cpu": "16"}, "a limit of 0 GPUs would say something about GPUs"


def test_a_pool_has_the_rank_it_was_given() -> None:
    assert value(spec(pool()), "weight") == 7, "the rank among all pools is not one pool's to decide"


def test_running_pods_are_never_moved_for_price_or_drift() -> None:
    assert value(spec(), "disruption", "consolidationPolicy") == "WhenEmpty", (
        "a node is given back when nothing runs on it"
    )
    allowed = budgets(spec())
    assert (allowed["Drifted"], allowed["Underutilized"]) == ("0", "0"), (
        "a move costs every step since the last checkpoint"
    )


def test_empty_nodes_are_still_given_back() -> None:
    assert budgets(spec())["Empty"] == "100%", "written budgets replace the default one"


def test_a_roll_out_lifts_the_budget_for_drift_and_for_nothing_else() -> None:
    usual, rolling = budgets(spec()), budgets(spec(roll_out=True))
    changed = {reason for reason in usual if usual[reason] != rolling[reason]}
    assert changed == {"Drifted"}, "price moves no pod even then"


def test_a_roll_out_takes_all_machines_at_once() -> None:
    assert budgets(spec(roll_out=True))["Drifted"] == "100%", (
        "a job restarts when one of its nodes goes: one by one, it would restart for each"
    )


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
