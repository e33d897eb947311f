"""Pools on EC2 on a real API server with the CRDs of Karpenter's provider."""

import json
from dataclasses import replace
from typing import cast

import pytest

from holdfast.components.pools.ec2 import Ec2NodeClassArgs, ec2_node_class
from holdfast.components.pools.karpenter import node_pool_spec
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import Machine, machine_catalogue
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeError
from tests.support.builders.configurations import pool
from tests.support.clusters.control_plane import CHECKOUT, define_all
from tests.support.inputs import mapping, value

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
    define_all(client, CHECKOUT / "components" / "charts" / "karpenter-crds" / "files")
    return client


def node_class(args: Ec2NodeClassArgs = ARGS, **changes: object) -> Json:
    made = ec2_node_class(args)
    spec = {**cast("Json", made.spec), **changes}
    return cast(
        "Json",
        {"apiVersion": made.api_version, "kind": made.kind, "metadata": {"name": "pool"}, "spec": spec},
    )


def node_pool(spec: Json) -> Json:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "pool"}, "spec": spec}


def admitted(cluster: KubeClient, document: Json) -> Json:
    return cluster.apply(document, field_manager="tests", dry_run=True)


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
    written = mapping(node_class(args), "spec")
    kept = mapping(admitted(cluster, node_class(args)), "spec")
    assert {key: kept.get(key) for key in written} == json.loads(json.dumps(written)), (
        "no field is dropped or taken for another"
    )


def test_the_server_adds_nothing_to_a_node_class(cluster: KubeClient) -> None:
    written, kept = mapping(node_class(), "spec"), mapping(admitted(cluster, node_class()), "spec")
    assert set(kept) == set(written), "an unset default would be a permanent diff"


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
    with pytest.raises(KubeError, match=refusal):
        admitted(cluster, node_class(ARGS, **changes))


@pytest.mark.parametrize("capacity", list(CapacityType))
@pytest.mark.parametrize("machines", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("roll_out", [False, True], ids=["usual", "roll-out"])
def test_a_node_pool_is_stored_unchanged(
    cluster: KubeClient, capacity: CapacityType, machines: tuple[Machine, ...], roll_out: bool
) -> None:
    facts = pool("pool", capacity=capacity, has_gpus=machines is GPU)
    written = node_pool_spec(
        facts,
        machines,
        ec2_node_class(ARGS),
        "pool",
        50,
        zones=("us-east-1a",),
        efa=machines is GPU,
        roll_out=roll_out,
    )
    kept = mapping(admitted(cluster, node_pool(written)), "spec")
    for path in (("disruption",), ("limits",), ("template", "spec"), ("template", "metadata", "labels")):
        assert value(kept, *path) == json.loads(json.dumps(value(written, *path))), (
            f"{path} is not kept as it is written"
        )
