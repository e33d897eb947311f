"""Pools of Karpenter: the NodePool and its node class."""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import cast

import pytest
from pulumi_aws.ec2 import Subnet

from pulumi_holdfast.aws.pools import Ec2NodeClassArgs, ec2_node_class
from pulumi_holdfast.kubernetes.karpenter_pool import (
    KWOK,
    TERMINATION_GRACE_PERIOD,
    KarpenterPool,
    KarpenterPoolArgs,
    node_pool_spec,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine
from pulumi_holdfast.ladder.pools import Pool
from tests.support.builders.configurations import machine, pool
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import mapping, objects, text, value

ARGS = KarpenterPoolArgs(pool=pool("a100"), machines=(machine(),), node_class=KWOK, weight=7)


def recorded(args: KarpenterPoolArgs = ARGS, *, preview: bool = False) -> Recording:
    return record(lambda: KarpenterPool("pool-a100", args), preview=preview)


def minutes(duration: str) -> int:
    found = re.fullmatch(r"(\d+)m", duration)
    assert found, f"{duration} is in minutes"
    return int(found[1])


@pytest.mark.parametrize("preview", [False, True])
def test_it_creates_one_node_pool_and_its_node_class_with_the_pools_name(preview: bool) -> None:
    recording = recorded(preview=preview)
    node_pool = recording.one(":NodePool")
    made = sorted((resource.type, resource.name) for resource in recording)
    assert made == [
        ("holdfast:index:KarpenterPool", "pool-a100"),
        ("kubernetes:karpenter.kwok.sh/v1alpha1:KWOKNodeClass", "pool-a100-node-class"),
        ("kubernetes:karpenter.sh/v1:NodePool", "pool-a100-node-pool"),
    ]
    names = {text(resource, "metadata", "name") for resource in recording if resource.custom}
    assert names == {"a100"}
    assert "pool-a100-node-class" in node_pool.depends_on
    policy = text(node_pool, "metadata", "annotations", "pulumi.com/deletionPropagationPolicy")
    assert policy == "foreground", "otherwise Karpenter could be deleted before its nodes"
    reference = mapping(node_pool, "spec", "template", "spec", "nodeClassRef")
    assert reference == {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "a100"}
    assert minutes(node_pool.delete_timeout) > minutes(TERMINATION_GRACE_PERIOD)


def test_zones_fabric_and_roll_out_are_passed_to_the_node_pool() -> None:
    rolling = replace(ARGS, zones=("us-east-1a",), efa=True, roll_out=True)
    expected = node_pool_spec(
        ARGS.pool, ARGS.machines, KWOK, "a100", 7, zones=("us-east-1a",), efa=True, roll_out=True
    )
    made = recorded(rolling).one(":NodePool").inputs["spec"]
    assert made == json.loads(json.dumps(expected))


def test_the_node_class_depends_on_its_inputs() -> None:
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
    assert "private" in node_class.depends_on, "nodes must be deleted before their network"
    subnets = objects(node_class, "spec", "subnetSelectorTerms")
    assert subnets == [{"id": "private-id"}]


def test_the_node_class_has_its_clouds_specification() -> None:
    slow = replace(KWOK, spec={"nodeRegistrationDelay": "30s"})
    node_class = recorded(replace(ARGS, node_class=slow)).one(":KWOKNodeClass")
    assert node_class.inputs["spec"] == {"nodeRegistrationDelay": "30s"}


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
    """How many nodes may be disrupted at once, by reason."""
    found: dict[str, str] = {}
    for budget in objects(document, "disruption", "budgets"):
        assert not {"schedule", "duration"} & budget.keys()
        for reason in cast("Sequence[str]", budget["reasons"]):
            assert reason not in found, f"{reason} is in two budgets"
            found[reason] = text(budget, "nodes")
    return found


def requirement(document: Json, key: str) -> Json:
    found = [each for each in objects(document, "template", "spec", "requirements") if each["key"] == key]
    assert len(found) == 1, f"{key} is required once"
    return found[0]


@pytest.mark.parametrize("capacity", list(CapacityType))
def test_a_pool_buys_one_capacity_type(capacity: CapacityType) -> None:
    required = requirement(spec(pool(capacity=capacity)), "karpenter.sh/capacity-type")
    assert (required["operator"], list(objects(required, "values"))) == ("In", [capacity.value])


def test_a_pool_buys_only_the_listed_machines_in_the_configured_zones() -> None:
    required = requirement(spec(pool(has_gpus=True)), "node.kubernetes.io/instance-type")
    assert list(objects(required, "values")) == ["p4d.24xlarge", "g6.12xlarge"]
    required = requirement(spec(zones=("us-east-1a", "us-east-1b")), "topology.kubernetes.io/zone")
    assert list(objects(required, "values")) == ["us-east-1a", "us-east-1b"]
    keys = [each["key"] for each in objects(spec(), "template", "spec", "requirements")]
    assert "topology.kubernetes.io/zone" not in keys
    graviton = (replace(machine("m7g.xlarge"), arch="arm64"),)
    required = requirement(spec(machines=graviton), "kubernetes.io/arch")
    assert list(objects(required, "values")) == ["arm64"]


def test_a_spot_gpu_pool_has_both_taints() -> None:
    taints = objects(spec(pool(capacity=CapacityType.SPOT, has_gpus=True)), "template", "spec", "taints")
    assert [taint["key"] for taint in taints] == ["karpenter.sh/capacity-type", "nvidia.com/gpu"]


def test_nodes_have_the_labels_of_their_pool_and_device_plugins() -> None:
    labels = mapping(spec(pool("a100")), "template", "metadata", "labels")
    assert labels == {"holdfast.dev/pool": "a100"}
    labels = mapping(spec(pool(has_gpus=True)), "template", "metadata", "labels")
    assert labels["nvidia.com/gpu.present"] == "true"
    labels = mapping(spec(pool(has_gpus=True), efa=True), "template", "metadata", "labels")
    assert labels["holdfast.dev/efa"] == "true"


def test_limits_have_the_nodes_and_the_resources_of_the_largest_machines() -> None:
    limits = mapping(spec(pool(has_gpus=True, max_nodes=4)), "limits")
    assert limits == {"nodes": "4", "cpu": "384", "nvidia.com/gpu": "32"}
    limits = mapping(spec(pool(max_nodes=4)), "limits")
    assert limits == {"nodes": "4", "cpu": "16"}, "a limit of 0 would have an effect"


def test_only_empty_nodes_are_disrupted_and_nodes_do_not_expire() -> None:
    made = spec()
    assert value(made, "disruption", "consolidationPolicy") == "WhenEmpty"
    allowed = budgets(made)
    assert (allowed["Drifted"], allowed["Underutilized"]) == ("0", "0")
    assert budgets(made)["Empty"] == "100%", "explicit budgets replace the default"
    node = mapping(made, "template", "spec")
    assert node["expireAfter"] == "Never", "Karpenter's default would interrupt training after 30 days"
    assert text(node, "terminationGracePeriod").endswith("m"), "one blocked eviction would keep a node"
    assert value(made, "weight") == 7


def test_a_roll_out_replaces_all_drifted_nodes_at_once_and_no_others() -> None:
    usual = budgets(spec())
    rolling = budgets(spec(roll_out=True))
    changed = {reason for reason in usual if usual[reason] != rolling[reason]}
    assert changed == {"Drifted"}
    assert rolling["Drifted"] == "100%", "one at a time would restart a job for each node"
