"""A pool that Karpenter keeps."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from components.pools.karpenter import KarpenterPool, KarpenterPoolArgs
from components.pools.node_class import KWOK
from components.pools.node_pool import TERMINATION_GRACE_PERIOD
from tests.support.builders import machine, pool
from tests.support.inputs import text
from tests.support.recorder import Recording, record

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


def test_a_node_class_says_what_its_cloud_needs() -> None:
    slow = replace(KWOK, spec={"nodeRegistrationDelay": "30s"})
    node_class = recorded(replace(ARGS, node_class=slow)).one(":KWOKNodeClass")
    assert node_class.inputs["spec"] == {"nodeRegistrationDelay": "30s"}, "passed on as it is"
