"""An EKS cluster on the real engine: created in a valid order, unchanged by a second up, protected, deleted completely."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pulumi
import pytest

from pulumi_holdfast.aws.control_plane.access import NodeAccess, NodeAccessArgs
from pulumi_holdfast.aws.control_plane.component import EksCluster, EksClusterArgs
from pulumi_holdfast.aws.policy_documents import service_trust
from tests.support.builders.aws_components import cluster_args
from tests.support.clusters.cloud_program import CloudProgram, create_once, destroy_once_released

pytestmark = pytest.mark.engine

_CLUSTER = "aws:eks/cluster:Cluster"
_GROUP = "aws:eks/nodeGroup:NodeGroup"


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    return CloudProgram(root=tmp_path, packages=("aws", "kubernetes"))


def program(change: Callable[[EksClusterArgs], EksClusterArgs] = replace) -> Callable[[], None]:
    """A cluster, nodes of another role that are let in, and something inside."""

    def run() -> None:
        from pulumi_aws.iam import Role
        from pulumi_kubernetes.core.v1 import ConfigMap

        cluster = EksCluster("cluster", change(cluster_args()))
        role = Role("workers", assume_role_policy=service_trust("ec2.amazonaws.com"))
        NodeAccess(
            "workers",
            NodeAccessArgs(cluster_name=cluster.cluster_name, role_arn=role.arn),
            opts=pulumi.ResourceOptions(depends_on=[cluster.pod_identity]),
        )
        ConfigMap("inside", opts=pulumi.ResourceOptions(provider=cluster.kubernetes))
        pulumi.export("issuer", cluster.workload_identity_issuer)
        pulumi.export("group", cluster.cluster_security_group_id)

    return run


def protected(args: EksClusterArgs) -> EksClusterArgs:
    return replace(args, protected=True)


def test_a_cluster_is_created_once_and_destroyed_only_without_protection(stack: CloudProgram) -> None:
    made = create_once(stack, program(protected))
    (cluster,) = stack.objects(_CLUSTER)
    assert str(made.outputs["issuer"]) in json.dumps(cluster.computed)
    assert str(made.outputs["group"]).startswith("sg-")
    destroy_once_released(stack, program(protected), program())


def test_a_cluster_moves_to_new_add_ons_and_nodes_in_place(stack: CloudProgram) -> None:
    stack.up(program())

    def newer(args: EksClusterArgs) -> EksClusterArgs:
        return replace(
            args,
            addons=replace(args.addons, vpc_cni="v1.23.1-eksbuild.1"),
            system_nodes=replace(args.system_nodes, volume_gib=80, release_version="1.36.4-20260923"),
        )

    changed = stack.up(program(newer))
    assert changed.changes.get("update") == 3
    assert "replace" not in changed.changes
    (group,) = stack.objects(_GROUP)
    template = cast("dict[str, object]", group.inputs["launchTemplate"])
    assert template["version"] == "2"


def test_new_machines_exist_before_old_ones_are_deleted(stack: CloudProgram) -> None:
    stack.up(program())
    (before,) = stack.objects(_GROUP)

    def other(args: EksClusterArgs) -> EksClusterArgs:
        return replace(args, system_nodes=replace(args.system_nodes, instance_types=["m7a.xlarge"]))

    stack.up(program(other))
    (after,) = stack.objects(_GROUP)
    assert after.id != before.id, "a fixed name would have to be given up before it is taken again"
    assert stack.up(program(other)).changed == 0
