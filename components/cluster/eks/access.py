"""Who is let into the cluster: access entries, and nothing in a ConfigMap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_aws.eks import AccessEntry, AccessPolicyAssociation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input

_ADMIN_POLICY: Final = "AmazonEKSClusterAdminPolicy"


@dataclass(frozen=True, kw_only=True)
class ClusterAdminsArgs:
    """`principals` are the ARNs of IAM roles and users; the cluster's creator is let in already and not among them."""

    cluster_name: Input[str]
    partition: str
    principals: Sequence[str]


class ClusterAdmins(ComponentResource):
    """Principals that may do everything in the cluster.

    Creates for each an access entry and its association with EKS's policy for administrators.
    """

    def __init__(self, name: str, args: ClusterAdminsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ClusterAdmins", name, None, opts)
        for principal in args.principals:
            # `arn:aws:iam::123456789012:role/platform`: what follows `::` tells principals of all accounts apart.
            who = principal.rpartition("::")[2]
            entry = AccessEntry(
                f"{name}-{who}",
                cluster_name=args.cluster_name,
                principal_arn=principal,
                type="STANDARD",
                opts=ResourceOptions(parent=self),
            )
            AccessPolicyAssociation(
                f"{name}-{who}-policy",
                cluster_name=args.cluster_name,
                principal_arn=entry.principal_arn,
                policy_arn=f"arn:{args.partition}:eks::aws:cluster-access-policy/{_ADMIN_POLICY}",
                access_scope={"type": "cluster"},
                opts=ResourceOptions(parent=self),
            )
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class NodeAccessArgs:
    """`role_arn` is a role that nodes have which no managed node group started."""

    cluster_name: Input[str]
    role_arn: Input[str]


class NodeAccess(ComponentResource):
    """Lets nodes of a role join the cluster.

    Creates the role's access entry, of the type `EC2_LINUX`. Never for the role of a managed node group: EKS makes that
    entry itself and refuses a second one.
    """

    def __init__(self, name: str, args: NodeAccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:NodeAccess", name, None, opts)
        AccessEntry(
            f"{name}-entry",
            cluster_name=args.cluster_name,
            principal_arn=args.role_arn,
            type="EC2_LINUX",
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
