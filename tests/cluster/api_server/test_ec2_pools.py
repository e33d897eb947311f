"""Pools on EC2 on a real API server with the CRDs of Karpenter's provider."""

from dataclasses import replace

import pytest

from pulumi_holdfast.aws.pools import Ec2NodeClassArgs, ec2_node_class
from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.kubernetes.karpenter_pool import node_pool_spec
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.configurations import pool
from tests.support.builders.karpenter_objects import class_object, stored_otherwise, stored_spec, written
from tests.support.clusters.control_plane import CHECKOUT, define_all

pytestmark = pytest.mark.cluster

AWS = machine_catalogue("aws")
CPU = (AWS["m7i.xlarge"], AWS["m7a.xlarge"], AWS["m6i.xlarge"])
GPU = (AWS["p4d.24xlarge"], AWS["p4de.24xlarge"], AWS["p5.48xlarge"])
ARGS = Ec2NodeClassArgs(
    node_role="holdfast-nodes",
    subnet_ids=["subnet-0a1b2c3d", "subnet-0e4f5a6b"],
    security_group_ids=["sg-0a1b2c3d", "sg-0e4f5a6b"],
    ami_alias="al2023@v20260903",
    volume_gib=100,
    tags={"holdfast.dev/stack": "aws-dev"},
)


@pytest.fixture(scope="module")
def cluster(client: KubeClient) -> KubeClient:
    """The cluster, with the CRDs of Karpenter's provider for EC2."""
    define_all(client, CHECKOUT / "components/pulumi_holdfast/kubernetes/charts" / "karpenter-crds" / "files")
    return client


@pytest.mark.parametrize(
    "args",
    [
        ARGS,
        replace(ARGS, node_role=None, instance_profile="holdfast-nodes"),
        replace(ARGS, placement_group="pg-0a1b2c3d"),
        replace(ARGS, volume_gib=16384, tags={}),
    ],
    ids=["usual", "isolated", "placement-group", "largest-volume"],
)
def test_a_node_class_is_stored_unchanged(cluster: KubeClient, args: Ec2NodeClassArgs) -> None:
    made = ec2_node_class(args)
    assert stored_spec(cluster, class_object(made)) == written(made.spec)


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"instanceProfile": "another"}, "exactly one of"),
        ({"subnetSelectorTerms": [{"id": "vpc-1"}]}, "subnet-"),
        ({"amiSelectorTerms": [{"alias": "al2022@v1"}]}, "family is not supported"),
        ({"tags": {"kubernetes.io/cluster/other": "owned"}}, "restricted tag"),
    ],
    ids=["two-identities", "no-subnet", "unknown-family", "reserved-tag"],
)
def test_a_node_class_that_karpenter_rejects_is_rejected(
    cluster: KubeClient, changes: dict[str, object], refusal: str
) -> None:
    with pytest.raises(ApiError, match=refusal):
        stored_spec(cluster, class_object(ec2_node_class(ARGS), **changes))


@pytest.mark.parametrize("capacity", list(CapacityType))
@pytest.mark.parametrize("machines", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("roll_out", [False, True], ids=["usual", "roll-out"])
def test_a_node_pool_is_stored_unchanged(
    cluster: KubeClient, capacity: CapacityType, machines: tuple[Machine, ...], roll_out: bool
) -> None:
    facts = pool("pool", capacity=capacity, has_gpus=machines is GPU)
    spec = node_pool_spec(
        facts,
        machines,
        ec2_node_class(ARGS),
        "pool",
        50,
        zones=("us-east-1a",),
        efa=machines is GPU,
        roll_out=roll_out,
    )
    assert stored_otherwise(cluster, spec) == []
