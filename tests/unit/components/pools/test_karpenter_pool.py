"""A pool that Karpenter keeps."""

from __future__ import annotations

import json
import re
from dataclasses import replace

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
from tests.support.builders.configurations import machine, pool
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import objects, text

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
