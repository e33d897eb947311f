"""What an on-demand pool sets otherwise than the spot pool: named where no rule judges it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.program.pools.declared import declared_pools
from pulumi_holdfast.program.pools.differences import differences
from pulumi_holdfast.program.pools.gke import NODE_POOL
from pulumi_holdfast.program.resources import StackResource, Value
from rule import PACK_DEFAULTS
from rules.verdicts import Word, verdicts
from tests.support.builders.policy_programs import of, put
from tests.support.builders.program_jobs import cpu_pool, declared_jobset, job_program
from tests.support.builders.stack_resources import aks_cluster, aks_pool, resource


def told(*made: StackResource) -> list[str]:
    """What the pool `on-demand` sets otherwise than the pool `spot`."""
    pools = {pool.label: pool for pool in declared_pools(made)}
    return [*differences(pools["on-demand"], [pools["spot"]], made)]


def group(name: str, **fields: Value) -> StackResource:
    own: Value = {POOL: name, **({"market": "spot"} if name == "spot" else {})}
    props: dict[str, Value] = {
        "labels": own,
        "instanceTypes": ["m7i.xlarge"],
        "nodeRoleArn": "arn:nodes",
        **fields,
    }
    return resource("aws:eks/nodeGroup:NodeGroup", name, props)


TAINT: Value = {"key": "dedicated", "value": "training", "effect": "NO_SCHEDULE"}


@pytest.mark.parametrize(
    ("spot", "on_demand", "what"),
    [
        ({}, {}, ""),
        ({}, {"instanceTypes": ["m7i.2xlarge"]}, ""),
        ({}, {"nodeRoleArn": "arn:others"}, "`nodeRoleArn` may differ"),
        ({"labels": {POOL: "spot", "cni": "cilium"}}, {}, "no label cni"),
        ({}, {"labels": {POOL: "on-demand", "cni": "cilium"}}, ""),
        ({}, {"taints": [TAINT]}, "tolerate dedicated=training:NoSchedule"),
        ({"taints": [TAINT]}, {"taints": [TAINT]}, ""),
        ({"nodeRoleArn": UNKNOWN}, {"nodeRoleArn": UNKNOWN}, ""),
    ],
    ids=[
        "alike",
        "machines",
        "role",
        "label of spot",
        "label of its own",
        "taint",
        "taint of both",
        "not known yet",
    ],
)
def test_difference_that_no_rule_judges_is_named(
    spot: Mapping[str, Value], on_demand: Mapping[str, Value], what: str
) -> None:
    found = told(group("spot", **spot), group("on-demand", **on_demand))
    assert [what in each for each in found] == [True] * bool(what), str(found)


def test_value_that_is_not_known_yet_is_compared_by_what_it_is_made_from() -> None:
    spot, other = group("spot", nodeRoleArn=UNKNOWN), group("on-demand", nodeRoleArn=UNKNOWN)
    ours, theirs = ({"nodeRoleArn": (f"urn:{name}",)} for name in ("ours", "theirs"))
    assert told(replace(spot, refers_to=ours), replace(other, refers_to=theirs)), "of two roles"
    assert not told(replace(spot, refers_to=ours), replace(other, refers_to=ours)), "of one role"


def node_class(name: str, **spec: Value) -> StackResource:
    return resource(
        "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", name, {"metadata": {"name": name}, "spec": spec}
    )


def of_class(name: str, kind: str, named: str) -> StackResource:
    reference: Value = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": named}
    return cpu_pool(name, kind, nodeClassRef=reference)


@pytest.mark.parametrize(
    ("of_spot", "named"), [((), True), (("example.com/agent",), False)], ids=["alone", "on both tiers"]
)
def test_startup_taint_of_the_last_tier_alone_is_named(of_spot: tuple[str, ...], *, named: bool) -> None:
    taints = [
        [{"key": key, "effect": "NoSchedule"} for key in keys] for keys in (of_spot, ("example.com/agent",))
    ]
    spot, last = (
        cpu_pool(name, name, startupTaints=cast("Value", each))
        for name, each in zip(("spot", "on-demand"), taints, strict=True)
    )
    found = told(spot, last)
    assert ["removes the startup taint example.com/agent" in each for each in found] == [True] * named, (
        f"nothing may remove it on the nodes of this tier: {found}"
    )


def gke(name: str, account: str) -> StackResource:
    config: Value = {"labels": {POOL: name}, "machineType": "n2-standard-8", "serviceAccount": account}
    return resource(NODE_POOL, name, {"name": name, "cluster": "c", "nodeConfig": config})


def inline(name: str, subnet: str) -> Value:
    return {
        "name": name,
        "mode": "User",
        "vmSize": "Standard_D8s_v5",
        "nodeLabels": {POOL: name},
        "vnetSubnetID": subnet,
    }


ONE_CLASS = [
    of_class("spot", "spot", "a"),
    of_class("on-demand", "on-demand", "a"),
    node_class("a", role="nodes"),
]
TWO_CLASSES = [
    of_class("spot", "spot", "a"),
    of_class("on-demand", "on-demand", "b"),
    node_class("a", role="nodes", tags={"a": "1"}),
    node_class("b", role="others", tags={"b": "1"}),
]


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (ONE_CLASS, ""),
        (TWO_CLASSES, "`spec.role`"),
        ([gke("spot", "a@lab"), gke("on-demand", "a@lab")], ""),
        ([gke("spot", "a@lab"), gke("on-demand", "b@lab")], "`nodeConfig.serviceAccount`"),
        ([aks_pool("spot", vnetSubnetID="a"), aks_pool("on-demand", vnetSubnetID="b")], "`vnetSubnetID`"),
        ([aks_cluster(agentPoolProfiles=[inline("spot", "a"), inline("on-demand", "b")])], "`vnetSubnetID`"),
        ([group("spot"), aks_pool("on-demand", vnetSubnetID="b")], ""),
    ],
    ids=[
        "one class",
        "two classes",
        "one account",
        "two accounts",
        "subnets",
        "inside a cluster",
        "of two kinds",
    ],
)
def test_differences_are_read_of_each_kind_of_pool(made: list[StackResource], what: str) -> None:
    found = told(*made)
    assert [what in each for each in found] == [True] * bool(what), str(found)


def test_job_that_reaches_a_pool_with_differences_is_assumed_to_run_there() -> None:
    program = job_program(declared_jobset({}))
    same = next(
        each.word for each in verdicts(program, PACK_DEFAULTS)[0].parts if each.about == "JobSet 'train'"
    )
    put(
        of(program, ":NodePool", "cpu-spot"),
        {POOL: "cpu-spot", "cni": "cilium"},
        "spec",
        "template",
        "metadata",
        "labels",
    )
    part = next(each for each in verdicts(program, PACK_DEFAULTS)[0].parts if each.about == "JobSet 'train'")
    assert (same, part.word) == (Word.PROVED, Word.ASSUMED), str(part)
    assert "agents need no label cni" in part.reason, str(part)
