"""The control plane of an EKS cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from pulumi import ComponentResource, ResourceOptions
from pulumi_aws.cloudwatch import LogGroup
from pulumi_aws.eks import Cluster
from pulumi_aws.vpc import SecurityGroupIngressRule

from holdfast.components.cluster.eks.encryption import SecretsKey, SecretsKeyArgs
from holdfast.components.cluster.eks.role import RoleWithPolicies, RoleWithPoliciesArgs
from holdfast.components.iam.aws import service_trust

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input, Output

    from holdfast.components.cluster.eks.endpoint import EndpointAccess
    from holdfast.components.iam.aws import Place

_LOGS: Final = ("api", "audit", "authenticator", "controllerManager", "scheduler")

#: Read when the cluster is made and never again. A difference in one of them later (a cluster that was imported, a
#: default that changed) says nothing about the cluster, yet would replace it with everything in it.
_READ_ONCE: Final = ("accessConfig.bootstrapClusterCreatorAdminPermissions", "bootstrapSelfManagedAddons")


@dataclass(frozen=True, kw_only=True)
class ControlPlaneArgs:
    """`subnet_ids` are in two zones or more, `service_cidr` is the range of Services' addresses.

    `protected`: neither cluster nor key can be deleted, by Pulumi or by hand.
    """

    cluster_name: str
    version: str
    place: Place
    subnet_ids: Sequence[Input[str]]
    service_cidr: str
    endpoint: EndpointAccess
    log_retention_days: int
    protected: bool


class ControlPlane(ComponentResource):
    """The API server and all behind it, without a node and without an add-on.

    Creates its role, the key of its secrets, the log group that EKS would otherwise make itself and keep for ever, the
    cluster, and rules that let private clients in. Only access entries say who gets in: the first is the creator's,
    which EKS makes with the cluster and removes with it.
    """

    cluster: Cluster
    security_group_id: Output[str]
    private_access: Sequence[SecurityGroupIngressRule]

    def __init__(self, name: str, args: ControlPlaneArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ControlPlane", name, None, opts)
        role = RoleWithPolicies(
            f"{name}-iam",
            RoleWithPoliciesArgs(
                place=args.place,
                trust=service_trust("eks.amazonaws.com"),
                policies=["AmazonEKSClusterPolicy"],
                description=f"Control plane of the EKS cluster {args.cluster_name}",
            ),
            opts=ResourceOptions(parent=self),
        )
        key = SecretsKey(
            f"{name}-secrets",
            SecretsKeyArgs(cluster_name=args.cluster_name, protected=args.protected),
            opts=ResourceOptions(parent=self),
        )
        logs = LogGroup(
            f"{name}-logs",
            # The name EKS writes to: another one stays empty.
            name=f"/aws/eks/{args.cluster_name}/cluster",
            retention_in_days=args.log_retention_days,
            opts=ResourceOptions(parent=self),
        )
        self.cluster = Cluster(
            f"{name}-eks",
            name=args.cluster_name,
            version=args.version,
            role_arn=role.arn,
            # All five add-ons are the program's own: EKS puts none of them there first.
            bootstrap_self_managed_addons=False,
            access_config={
                "authentication_mode": "API",
                "bootstrap_cluster_creator_admin_permissions": True,
            },
            encryption_config={"provider": {"key_arn": key.arn}, "resources": ["secrets"]},
            enabled_cluster_log_types=list(_LOGS),
            kubernetes_network_config={"ip_family": "ipv4", "service_ipv4_cidr": args.service_cidr},
            vpc_config=args.endpoint.as_vpc_config(args.subnet_ids),
            deletion_protection=args.protected,
            opts=ResourceOptions(
                parent=self,
                depends_on=[logs],
                protect=True if args.protected else None,
                ignore_changes=list(_READ_ONCE),
            ),
        )
        self.security_group_id = self.cluster.vpc_config.apply(
            # Optional only because the same type is the input.
            lambda network: cast("str", network.cluster_security_group_id)
        )
        self.private_access = [
            SecurityGroupIngressRule(
                f"{name}-from-{cidr}",
                security_group_id=self.security_group_id,
                description="API server, private endpoint",
                cidr_ipv4=cidr,
                ip_protocol="tcp",
                from_port=443,
                to_port=443,
                opts=ResourceOptions(parent=self),
            )
            for cidr in args.endpoint.private_cidrs
        ]
        self.register_outputs({"name": self.cluster.name})
