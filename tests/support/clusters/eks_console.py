"""Creates a simulated EKS cluster call by call; a test omits or changes one part."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pulumi_holdfast.aws.policy_documents import service_trust
from pulumi_holdfast.rehearsal.engine.values import Properties, Value
from tests.support.clusters.provider_calls import Engine, Provider

CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
ADDON = "aws:eks/addon:Addon"
ACCESS_ENTRY = "aws:eks/accessEntry:AccessEntry"
ASSOCIATION = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
NAME = "train"
_TAINT = {"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}
_BUILDS: Mapping[str, str] = {
    "vpc-cni": "v1.22.4-eksbuild.3",
    "kube-proxy": "v1.36.0-eksbuild.25",
    "eks-pod-identity-agent": "v1.3.10-eksbuild.3",
    "coredns": "v1.14.3-eksbuild.23",
    "aws-ebs-csi-driver": "v1.66.0-eksbuild.1",
}


@dataclass(frozen=True, kw_only=True)
class EksConsole:
    """Makes the parts of one cluster, `train`, in an account."""

    aws: Provider

    def role(self, name: str, service: str, *policies: str) -> str:
        """Make a role that a service (`ec2`) assumes, with policies of AWS; return its ARN."""
        _, role = self.engine("aws:iam/role:Role", name).create(
            {"name": name, "assumeRolePolicy": service_trust(f"{service}.amazonaws.com")}
        )
        for policy in policies:
            self.engine("aws:iam/rolePolicyAttachment:RolePolicyAttachment", f"{name}-{policy}").create(
                {"role": name, "policyArn": f"arn:aws:iam::aws:policy/{policy}"}
            )
        return str(role["arn"])

    def cluster(self, **overrides: Value) -> dict[str, Value]:
        """Make the cluster; return its inputs."""
        inputs = self.cluster_inputs(**overrides)
        self.engine(CLUSTER).create(inputs)
        return inputs

    def cluster_inputs(self, **overrides: Value) -> dict[str, Value]:
        """The inputs of a cluster whose role is there."""
        role = overrides.pop("roleArn", None) or self.role("control", "eks", "AmazonEKSClusterPolicy")
        return {
            "name": NAME,
            "version": "1.36",
            "roleArn": role,
            "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True},
            "bootstrapSelfManagedAddons": False,
            "vpcConfig": {"subnetIds": ["subnet-1", "subnet-2"]},
            **overrides,
        }

    def node_group(self, **overrides: Value) -> str:
        """Make a node group; return the ARN of its role."""
        role = overrides.pop("nodeRoleArn", None) or self.role("nodes", "ec2", "AmazonEKSWorkerNodePolicy")
        inputs: Properties = {
            "clusterName": NAME,
            "nodeGroupName": "system",
            "nodeRoleArn": role,
            "subnetIds": ["subnet-1", "subnet-2"],
            "scalingConfig": {"desiredSize": 2, "minSize": 2, "maxSize": 2},
            "labels": {"holdfast.dev/system": "true"},
            "taints": [_TAINT],
            **overrides,
        }
        self.engine(NODE_GROUP).create(inputs)
        return str(role)

    def addon(self, name: str, *, version: str = "", configuration: Properties | None = None) -> None:
        """Install an add-on."""
        configured: Properties = {"configurationValues": json.dumps(configuration)} if configuration else {}
        self.engine(ADDON, name).create(
            {
                "clusterName": NAME,
                "addonName": name,
                "addonVersion": version or _BUILDS.get(name, "v1.0.0-eksbuild.1"),
                **configured,
            }
        )

    def network_addons(self) -> None:
        """Install what nodes need to get ready."""
        self.addon("vpc-cni")
        self.addon("kube-proxy")

    def identity(self, service_account: str) -> None:
        """Give a service account of kube-system a role."""
        self.engine("aws:eks/podIdentityAssociation:PodIdentityAssociation").create(
            {
                "clusterName": NAME,
                "namespace": "kube-system",
                "serviceAccount": service_account,
                "roleArn": self.role("ebs", "pods.eks"),
            }
        )

    def engine(self, token: str, name: str = "one") -> Engine:
        """The engine's side of one resource."""
        return Engine(provider=self.aws, type=token, name=name)
