"""Whether Cluster Autoscaler adds nodes to a node group of EKS, as far as a program shows it."""

import json

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.program.pools.cluster_autoscaler import is_fixed, never_scaled
from pulumi_holdfast.program.resources import StackResource, Value
from tests.support.builders.stack_resources import resource


def group(**scaling: Value) -> StackResource:
    """A node group of the cluster `lab` that starts without nodes, unless these sizes say otherwise."""
    props: dict[str, Value] = {
        "nodeGroupName": "gpus",
        "clusterName": "lab",
        "labels": {POOL: "gpus"},
        "scalingConfig": {"minSize": 0.0, "maxSize": 4.0, **scaling},
    }
    return resource("aws:eks/nodeGroup:NodeGroup", "gpus", props)


def chart(values: Value) -> StackResource:
    return resource(
        "kubernetes:helm.sh/v3:Release", "scaler", {"chart": "cluster-autoscaler", "values": values}
    )


def listing(*names: Value) -> Value:
    return {"autoscalingGroups": [{"name": name, "maxSize": 4} for name in names]}


@pytest.mark.parametrize(
    ("values", "finds"),
    [
        (listing("eks-spot-1a2b"), False),
        (listing("eks-spot-1a2b", "eks-gpus-3c4d"), True),
        (listing("eks-spot-1a2b", UNKNOWN), True),
        ({"autoDiscovery": {"clusterName": "serve"}}, False),
        ({"autoDiscovery": {"clusterName": "lab"}}, True),
        ({"autoDiscovery": {"clusterName": UNKNOWN}}, True),
        ({"autoDiscovery": {"tags": ["team=ml"]}, "autoscalingGroups": [{"name": "eks-spot-1a2b"}]}, True),
        ({"autoscalingGroups": [{"name": "eks-spot-1a2b"}], "extraArgs": {"nodes": "0:4:eks-gpus-3c4d"}}, True),
        ({}, True),
        (UNKNOWN, True),
    ],
    ids=["another group", "this group", "a group that is not known", "another cluster", "this cluster", "a cluster that is not known", "tags", "arguments", "no values", "values that are not known"],
)  # fmt: skip
def test_group_that_the_chart_of_the_autoscaler_does_not_find_is_named(values: Value, *, finds: bool) -> None:
    made = group()
    found = [*never_scaled(made, [made, chart(values)])]
    assert (not found) is finds, "the chart's values say which groups it adds nodes to"
    fixed = group(minSize=4.0)
    assert not [*never_scaled(fixed, [fixed, chart(values)])], "a group of fixed size needs no autoscaler"


@pytest.mark.parametrize(
    ("actions", "tagged", "knows"),
    [
        (["autoscaling:SetDesiredCapacity"], False, False),
        (["autoscaling:SetDesiredCapacity", "eks:DescribeNodegroup"], False, True),
        (["autoscaling:SetDesiredCapacity"], True, True),
        (["s3:GetObject"], False, True),
    ],
    ids=["neither", "a right", "a tag", "no role of the autoscaler"],
)
def test_empty_group_whose_labels_the_autoscaler_cannot_read_is_named(
    actions: list[str], *, tagged: bool, knows: bool
) -> None:
    policy = json.dumps({"Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]})
    key = f"k8s.io/cluster-autoscaler/node-template/label/{POOL}"
    beside = [
        resource("aws:iam/rolePolicy:RolePolicy", "scaler", {"policy": policy}),
        *([resource("aws:autoscaling/tag:Tag", "label", {"tag": {"key": key}})] if tagged else []),
    ]
    made, started = group(), group(desiredSize=1.0)
    assert (not [*never_scaled(made, [made, *beside])]) is knows, (
        "it plans an empty group by the labels that it can read"
    )
    assert not [*never_scaled(started, [started, *beside])], "a node of the group shows its labels"


@pytest.mark.parametrize(
    ("sizes", "fixed"),
    [
        ({"minSize": 4.0}, True),
        ({}, False),
        ({"maxSize": 0.0}, False),
        ({"minSize": UNKNOWN, "maxSize": UNKNOWN}, False),
    ],
    ids=["fixed", "growing", "empty", "not known"],
)
def test_group_is_fixed_if_it_always_has_all_of_its_nodes(sizes: dict[str, Value], *, fixed: bool) -> None:
    assert is_fixed(group(**sizes)) is fixed, "EKS itself keeps the least number of nodes"
