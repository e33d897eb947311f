"""The control plane of an EKS cluster, the encryption key of its secrets and its endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_aws.cloudwatch import LogGroup
from pulumi_aws.eks import Cluster, ClusterVpcConfigArgsDict
from pulumi_aws.kms import Key
from pulumi_aws.vpc import SecurityGroupIngressRule

from pulumi_holdfast.aws.control_plane.access import RoleWithPolicies, RoleWithPoliciesArgs
from pulumi_holdfast.aws.policy_documents import Place, service_trust

#: Days during which a key's deletion can be canceled: KMS's longest and shortest period.
_LONGEST_WINDOW: Final = 30
_SHORTEST_WINDOW: Final = 7


def secrets_key(name: str, *, cluster_name: str, protected: bool, parent: Resource) -> Key:
    """Create a customer-managed key for a cluster's secrets, rotated yearly.

    It must outlive the cluster: without it the cluster cannot read its own state. If `protected`, Pulumi cannot delete it, and
    a deletion by hand can be canceled for 30 days. Its policy is KMS's default, which delegates to IAM; EKS gets a grant from
    the cluster's creator.
    """
    return Key(
        name,
        description=f"Secrets of the EKS cluster {cluster_name}",
        enable_key_rotation=True,
        deletion_window_in_days=_LONGEST_WINDOW if protected else _SHORTEST_WINDOW,
        opts=ResourceOptions(parent=parent, protect=True if protected else None),
    )


@dataclass(frozen=True, kw_only=True)
class EndpointAccess:
    """The address ranges that can reach the API server.

    `public_cidrs` over the internet; without any there is no public endpoint. `private_cidrs` from the VPC or
    a connected network; nodes need no entry.
    """

    public_cidrs: Sequence[str] = ()
    private_cidrs: Sequence[str] = ()

    def as_vpc_config(self, subnet_ids: Input[Sequence[Input[str]]]) -> ClusterVpcConfigArgsDict:
        """Return the VPC configuration of a cluster in these subnets.

        The private endpoint is always on; otherwise the nodes would need an entry in `public_cidrs`.
        """
        private: ClusterVpcConfigArgsDict = {
            "subnet_ids": subnet_ids,
            "endpoint_private_access": True,
            "endpoint_public_access": bool(self.public_cidrs),
        }
        return {**private, "public_access_cidrs": list(self.public_cidrs)} if self.public_cidrs else private


LOG_TYPES: Final = ("api", "audit", "authenticator", "controllerManager", "scheduler")


def log_group_name(cluster_name: str) -> str:
    """Return the name of the log group to which EKS writes."""
    return f"/aws/eks/{cluster_name}/cluster"


@dataclass(frozen=True, kw_only=True)
class ControlPlaneLogs:
    """The logs of the control plane: their types, empty for none, and how many days they are kept.

    `group_exists`: the log group is there and is adopted. EKS creates it again if a log arrives after its
    deletion, as at the end of a destroy.
    """

    types: Sequence[str] = LOG_TYPES
    retention_days: int = 90
    group_exists: bool = False


#: EKS reads these on creation only. A later difference (an imported cluster, a changed default) does not
#: describe the cluster, but would replace it with everything in it.
_READ_ONCE: Final = ("accessConfig.bootstrapClusterCreatorAdminPermissions", "bootstrapSelfManagedAddons")


@dataclass(frozen=True, kw_only=True)
class ControlPlaneArgs:
    """`subnet_ids` are in two or more zones; `service_cidr` is the address range of Services.

    `secrets_key` is the ARN of an existing key, None for a key of the stack. `upgrade_policy` is EXTENDED or
    STANDARD, EKS's support types. If `protected`, neither the cluster nor the key can be deleted, by Pulumi or by
    hand.
    """

    cluster_name: str
    version: str
    place: Place
    subnet_ids: Input[Sequence[Input[str]]]
    service_cidr: str
    endpoint: EndpointAccess
    logs: ControlPlaneLogs
    secrets_key: Input[str] | None
    upgrade_policy: str
    protected: bool


class ControlPlane(ComponentResource):
    """The API server, without nodes and add-ons (`holdfast:index:ControlPlane`).

    Creates its role, the key of its secrets, its log group (EKS would create one without retention), the
    cluster, and rules for private clients. Access is by access entries only; EKS creates the first one, for
    the cluster's creator, with the cluster.
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
        key: Input[str] = (
            args.secrets_key
            or secrets_key(
                f"{name}-secrets-key", cluster_name=args.cluster_name, protected=args.protected, parent=self
            ).arn
        )
        group = log_group_name(args.cluster_name)
        logs = LogGroup(
            f"{name}-logs",
            name=group,
            retention_in_days=args.logs.retention_days,
            # Once the group is in the state, the import of the same name has no effect.
            opts=ResourceOptions(parent=self, import_=group if args.logs.group_exists else None),
        )
        self.cluster = Cluster(
            f"{name}-eks",
            name=args.cluster_name,
            version=args.version,
            role_arn=role.arn,
            # The program installs the add-ons itself.
            bootstrap_self_managed_addons=False,
            access_config={"authentication_mode": "API", "bootstrap_cluster_creator_admin_permissions": True},
            encryption_config={"provider": {"key_arn": key}, "resources": ["secrets"]},
            enabled_cluster_log_types=list(args.logs.types),
            upgrade_policy={"support_type": args.upgrade_policy},
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
            # Optional only because the same type is used for inputs.
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
