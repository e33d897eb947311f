"""A pool that Karpenter keeps."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from pulumi_aws.ec2 import Subnet

from holdfast.components.pools.ec2 import Ec2NodeClassArgs, ec2_node_class
from holdfast.components.pools.karpenter import (
    KWOK,
    TERMINATION_GRACE_PERIOD,
    KarpenterPool,
    KarpenterPoolArgs,
    node_pool_spec,
)
from holdfast.scheduling.labels import CapacityType
from tests.support.builders.configurations import machine, pool
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import mapping, objects, text, value

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holdfast.scheduling.json import Json
    from holdfast.scheduling.machines import Machine
    from holdfast.scheduling.pools import Pool


ARGS = KarpenterPoolArgs(pool=pool("a100"), machines=(machine(),), node_class=KWOK, weight=7)


def recorded(args: KarpenterPoolArgs = ARGS, *, preview: bool = False) -> Recording:
    return record(lambda: KarpenterPool("pool-a100", args), preview=preview)


def minutes(duration: str) -> int:
    found = re.fullmatch(r"(\d+)m", duration)
    assert found, f"{duration} is in minutes"
    return int(found[1])


@pytest.mark.parametrize("preview", [False, True])
def test_it_makes_one_node_pool_and_its_node_class(preview: bool) -> None:
    made = sorted((resource.type, resource.name) for resource in recorded(preview=preview))
    assert made == [
        ("holdfast:index:KarpenterPool", "pool-a100"),
        ("kubernetes:karpenter.kwok.sh/v1alpha1:KWOKNodeClass", "pool-a100-node-class"),
        ("kubernetes:karpenter.sh/v1:NodePool", "pool-a100-node-pool"),
    ], "one pool is one of each"


def test_both_have_the_users_name_for_the_pool() -> None:
    names = {text(resource, "metadata", "name") for resource in recorded() if resource.custom}
    assert names == {"a100"}, "it is what jobs select and what kubectl shows"


def test_the_node_class_is_there_before_and_after_the_node_pool() -> None:
    node_pool = recorded().one(":NodePool")
    assert "pool-a100-node-class" in node_pool.depends_on, "nodes that end still need their class"


def test_deleting_the_pool_waits_for_its_nodes() -> None:
    node_pool = recorded().one(":NodePool")
    policy = text(node_pool, "metadata", "annotations", "pulumi.com/deletionPropagationPolicy")
    assert policy == "foreground", "else Karpenter could go before its nodes and they would stay for ever"
    assert minutes(node_pool.delete_timeout) > minutes(TERMINATION_GRACE_PERIOD), (
        "the wait must outlast the slowest node"
    )


def test_zones_fabric_and_roll_out_reach_the_node_pool() -> None:
    rolling = replace(ARGS, zones=("us-east-1a",), efa=True, roll_out=True)
    expected = node_pool_spec(
        ARGS.pool, ARGS.machines, KWOK, "a100", 7, zones=("us-east-1a",), efa=True, roll_out=True
    )
    made = recorded(rolling).one(":NodePool").inputs["spec"]
    assert made == json.loads(json.dumps(expected)), "as they were asked for"


def test_what_a_node_class_needs_comes_before_it() -> None:
    def program() -> None:
        subnet = Subnet("private", vpc_id="vpc-1")
        from_ec2 = ec2_node_class(
            Ec2NodeClassArgs(
                subnet_ids=[subnet.id],
                security_group_ids=["sg-1"],
                ami_alias="al2023@v20260903",
                volume_gib=100,
                node_role="nodes",
            )
        )
        KarpenterPool("pool-a100", replace(ARGS, node_class=from_ec2))

    node_class = record(program).one(":EC2NodeClass")
    assert "private" in node_class.depends_on, "nodes must be gone before the network that they are in"
    subnets = objects(node_class, "spec", "subnetSelectorTerms")
    assert subnets == [{"id": "private-id"}], "what was not known yet arrives in its place"


def test_a_node_class_says_what_its_cloud_needs() -> None:
    slow = replace(KWOK, spec={"nodeRegistrationDelay": "30s"})
    node_class = recorded(replace(ARGS, node_class=slow)).one(":KWOKNodeClass")
    assert node_class.inputs["spec"] == {"nodeRegistrationDelay": "30s"}, "passed on as it is"


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
