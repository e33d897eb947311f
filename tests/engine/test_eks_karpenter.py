"""The lifecycle of Karpenter on EKS on the real engine."""

import json
from collections.abc import Callable
from pathlib import Path

import pulumi
import pytest

from pulumi_holdfast.aws.control_plane.access import NodeAccess, NodeAccessArgs
from pulumi_holdfast.aws.control_plane.component import EksCluster
from pulumi_holdfast.aws.karpenter.component import EksKarpenter, EksKarpenterArgs
from tests.support.builders.aws_components import cluster_args
from tests.support.clusters.cloud_program import CloudProgram

pytestmark = pytest.mark.engine


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    return CloudProgram(root=tmp_path, packages=("aws", "kubernetes"))


def program(*, isolated: bool) -> Callable[[], None]:
    """A cluster, Karpenter in it, and the way of its nodes into the cluster."""

    def run() -> None:
        of = cluster_args()
        cluster = EksCluster("cluster", of)
        karpenter = EksKarpenter(
            "karpenter",
            EksKarpenterArgs(
                cluster_name=of.cluster_name,
                account=of.account,
                region=of.region,
                partition=of.partition,
                charts=None,
                images=None,
                version="1.14.1",
                image_digest="",
                isolated=isolated,
            ),
            opts=pulumi.ResourceOptions(
                providers={"kubernetes": cluster.kubernetes}, depends_on=[cluster.pod_identity]
            ),
        )
        NodeAccess("nodes", NodeAccessArgs(cluster_name=of.cluster_name, role_arn=karpenter.node_role_arn))

    return run


@pytest.mark.parametrize("isolated", [False, True], ids=["connected", "isolated"])
def test_karpenter_is_created_unchanged_by_a_second_up_and_destroyed(
    stack: CloudProgram, isolated: bool
) -> None:
    planned = stack.preview(program(isolated=isolated))
    made = stack.up(program(isolated=isolated))
    assert planned.changes["create"] == made.changes["create"]
    _names_are_those_of_what_exists(stack)
    assert stack.up(program(isolated=isolated)).changed == 0
    assert stack.refresh(program(isolated=isolated)).changed == 0
    stack.destroy(program(isolated=isolated))
    assert stack.cloud().read().all() == []


def _names_are_those_of_what_exists(stack: CloudProgram) -> None:
    """ARNs in documents are composed of names, so that a preview shows them: they must be the cloud's own."""
    documents = json.dumps([one.inputs for one in stack.objects("aws:iam/rolePolicy:RolePolicy")])
    (queue,) = stack.objects("aws:sqs/queue:Queue")
    assert str(queue.computed["arn"]) in documents
    (nodes,) = [
        one for one in stack.objects("aws:iam/role:Role") if one.urn.endswith("::karpenter-node-role")
    ]
    assert str(nodes.computed["arn"]) in documents
    (policy,) = stack.objects("aws:sqs/queuePolicy:QueuePolicy")
    rules = stack.objects("aws:cloudwatch/eventRule:EventRule")
    assert len(rules) == 5
    for rule in rules:
        assert str(rule.computed["arn"]) in str(policy.inputs["policy"])
