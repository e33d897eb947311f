"""A small program: an EKS cluster with a node group of two machines, and one object inside it."""

import json
from collections.abc import Callable, Mapping

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes

from holdfast.scheduling.labels import SYSTEM
from holdfast.scheduling.taints import SYSTEM as SYSTEM_TAINT

CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"


def eks(
    *,
    name: str = "holdfast-test",
    machines: int = 2,
    labels: Mapping[str, str] | None = None,
    with_object: bool = True,
) -> Callable[[], None]:
    """A program with a cluster of this name; `with_object`: a ConfigMap inside it."""

    def program() -> None:
        subnets = _subnets()
        role, allowed = _role("cluster", "eks.amazonaws.com", "AmazonEKSClusterPolicy")
        node_role, joining = _role("node", "ec2.amazonaws.com", "AmazonEKSWorkerNodePolicy")
        cluster = aws.eks.Cluster(
            "cluster",
            name=name,
            role_arn=role.arn,
            version="1.36",
            vpc_config={"subnet_ids": [subnet.id for subnet in subnets]},
            access_config={"authentication_mode": "API", "bootstrap_cluster_creator_admin_permissions": True},
            opts=pulumi.ResourceOptions(depends_on=allowed),
        )
        group = aws.eks.NodeGroup(
            "system",
            cluster_name=cluster.name,
            node_role_arn=node_role.arn,
            subnet_ids=[subnet.id for subnet in subnets],
            instance_types=["m7i.large"],
            scaling_config={"desired_size": machines, "min_size": machines, "max_size": machines},
            labels={SYSTEM: "true", **(labels or {})},
            taints=[{"key": SYSTEM_TAINT.key, "value": SYSTEM_TAINT.value, "effect": "NO_SCHEDULE"}],
            opts=pulumi.ResourceOptions(depends_on=joining),
        )
        if with_object:
            inside = kubernetes.Provider(
                "inside",
                kubeconfig=kubeconfig(cluster.name, cluster.endpoint, cluster.certificate_authority.data),
            )
            kubernetes.core.v1.ConfigMap(
                "conf",
                metadata={"name": f"conf-{name}", "namespace": "default"},
                data={"k": "1"},
                opts=pulumi.ResourceOptions(provider=inside, depends_on=[group]),
            )

    return program


def kubeconfig(
    name: pulumi.Input[str], endpoint: pulumi.Input[str], authority: pulumi.Input[str]
) -> pulumi.Output[str]:
    """A kubeconfig that asks the AWS CLI for a token."""
    return pulumi.Output.all(name, endpoint, authority).apply(lambda known: json.dumps(_kubeconfig(*known)))


def _kubeconfig(name: str, endpoint: str, authority: str) -> dict[str, object]:
    token = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "aws"}
    arguments = ["eks", "get-token", "--cluster-name", name]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "it", "cluster": {"server": endpoint, "certificate-authority-data": authority}}
        ],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
        "current-context": "it",
        "users": [{"name": "me", "user": {"exec": {**token, "args": arguments}}}],
    }


def _subnets() -> list[aws.ec2.Subnet]:
    vpc = aws.ec2.Vpc("network", cidr_block="10.0.0.0/16")
    return [
        aws.ec2.Subnet(
            f"zone-{letter}",
            vpc_id=vpc.id,
            cidr_block=f"10.0.{at}.0/24",
            availability_zone=f"eu-west-1{letter}",
        )
        for at, letter in enumerate("ab")
    ]


def _role(name: str, service: str, *policies: str) -> tuple[aws.iam.Role, list[aws.iam.RolePolicyAttachment]]:
    trust = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": service}, "Action": ["sts:AssumeRole"]}],
    }
    role = aws.iam.Role(name, name=f"holdfast-test-{name}", assume_role_policy=json.dumps(trust))
    attachments = [
        aws.iam.RolePolicyAttachment(
            f"{name}-{policy}", role=role.name, policy_arn=f"arn:aws:iam::aws:policy/{policy}"
        )
        for policy in policies
    ]
    return role, attachments
