"""Access to an EKS cluster: IAM roles, access entries (no ConfigMap), the kubeconfig, and trust in another cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Input, ResourceOptions
from pulumi_aws.eks import AccessEntry, AccessPolicyAssociation, IdentityProviderConfig
from pulumi_aws.iam import Role, RolePolicyAttachment

from pulumi_holdfast.kubernetes.fallback_controller.transfer_policy import account_prefix
from pulumi_holdfast.kubernetes.kubernetes_object import tied_to
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Output

    from pulumi_holdfast.aws.policy_documents import Place
    from pulumi_holdfast.ladder.json import Json


@dataclass(frozen=True, kw_only=True)
class RoleWithPoliciesArgs:
    """`trust` is the trust policy, `policies` are the names of AWS managed policies."""

    place: Place
    trust: str
    policies: Sequence[str]
    description: str


class RoleWithPolicies(ComponentResource):
    """A role with AWS managed policies (`holdfast:index:RoleWithPolicies`).

    Creates the Role and its attachments. `arn` depends on the attachments: users of the role are created
    after them and deleted before them.
    """

    arn: Output[str]

    def __init__(self, name: str, args: RoleWithPoliciesArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:RoleWithPolicies", name, None, opts)
        role = Role(
            f"{name}-role",
            assume_role_policy=args.trust,
            description=args.description,
            opts=ResourceOptions(parent=self),
        )
        attachments = [
            RolePolicyAttachment(
                f"{name}-{policy}",
                role=role.name,
                policy_arn=args.place.aws_policy(policy),
                opts=ResourceOptions(parent=self),
            )
            for policy in args.policies
        ]
        self.arn = tied_to(role.arn, attachments)
        self.register_outputs({"arn": self.arn})


_ADMIN_POLICY: Final = "AmazonEKSClusterAdminPolicy"


@dataclass(frozen=True, kw_only=True)
class ClusterAdminsArgs:
    """`principals` are the ARNs of IAM roles and users, without the cluster's creator, who has access."""

    cluster_name: Input[str]
    partition: str
    principals: Sequence[Input[str]]


class ClusterAdmins(ComponentResource):
    """Cluster administrators (`holdfast:index:ClusterAdmins`).

    Creates for each an access entry and its association with EKS's cluster admin policy.
    """

    def __init__(self, name: str, args: ClusterAdminsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ClusterAdmins", name, None, opts)
        for index, principal in enumerate(args.principals):
            who = _name_of(principal, index)
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
class GroupMembersArgs:
    """`groups` are the Kubernetes groups of each IAM principal, by its ARN."""

    cluster_name: Input[str]
    groups: Mapping[Input[str], Sequence[str]]


class GroupMembers(ComponentResource):
    """Users whose permissions are those of Kubernetes groups (`holdfast:index:GroupMembers`).

    Creates an access entry with its groups for each principal, and no access policy: EKS's policies know neither
    JobSets nor RayJobs.
    """

    def __init__(self, name: str, args: GroupMembersArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:GroupMembers", name, None, opts)
        for index, (principal, groups) in enumerate(args.groups.items()):
            AccessEntry(
                f"{name}-{_name_of(principal, index)}",
                cluster_name=args.cluster_name,
                principal_arn=principal,
                kubernetes_groups=list(groups),
                type="STANDARD",
                opts=ResourceOptions(parent=self),
            )
        self.register_outputs({})


def _name_of(principal: Input[str], index: int) -> str:
    """What names a principal's entry: in `arn:aws:iam::123456789012:role/platform`, the part after `::` is unique across accounts."""
    return principal.rpartition("::")[2] if isinstance(principal, str) else str(index)


@dataclass(frozen=True, kw_only=True)
class NodeAccessArgs:
    """`role_arn` is the role of nodes that belong to no managed node group."""

    cluster_name: Input[str]
    role_arn: Input[str]


class NodeAccess(ComponentResource):
    """Lets nodes with a role join the cluster (`holdfast:index:NodeAccess`).

    Creates an access entry of type `EC2_LINUX`. Not for the role of a managed node group: EKS creates that
    entry itself and rejects a second one.
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


#: The command that returns tokens to clients.
AWS_CLI: Final = "aws"


@dataclass(frozen=True, kw_only=True)
class ApiServer:
    """The address of a cluster's API server and its certificate authority in base64."""

    cluster_name: str
    region: str
    endpoint: str
    certificate_authority: str


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The identity that gets tokens: a profile of the AWS CLI and a role that it assumes; None for neither."""

    profile: str | None = None
    role_arn: str | None = None


def kubeconfig(server: ApiServer, caller: Caller) -> str:
    """Return a kubeconfig without a credential: it calls the AWS CLI for the caller's own."""
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": server.cluster_name,
                "cluster": {
                    "server": server.endpoint,
                    "certificate-authority-data": server.certificate_authority,
                },
            }
        ],
        "contexts": [
            {
                "name": server.cluster_name,
                "context": {"cluster": server.cluster_name, "user": server.cluster_name},
            }
        ],
        "current-context": server.cluster_name,
        "users": [{"name": server.cluster_name, "user": {"exec": _token_command(server, caller)}}],
    }
    return json.dumps(document)


def _token_command(server: ApiServer, caller: Caller) -> Json:
    profile: Json = (
        {} if caller.profile is None else {"env": [{"name": "AWS_PROFILE", "value": caller.profile}]}
    )
    role = () if caller.role_arn is None else ("--role-arn", caller.role_arn)
    return {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": AWS_CLI,
        "args": [
            "eks",
            "get-token",
            "--cluster-name",
            server.cluster_name,
            "--region",
            server.region,
            *role,
            "--output",
            "json",
        ],
        # A prompt would block an unattended run.
        "interactiveMode": "Never",
        **profile,
    }


@dataclass(frozen=True, kw_only=True)
class TrustedIssuerArgs:
    """`cluster` is the name that this cluster has for the other, and `issuer` that of its tokens.

    `audience` is the address of this cluster's API server, for which the other cluster's controller requests its tokens.
    """

    cluster_name: Input[str]
    cluster: str
    issuer: str
    audience: Input[str]


class TrustedIssuer(ComponentResource):
    """Authenticates the fallback controller of another cluster (`holdfast:index:TrustedIssuer`).

    Associates the OpenID Connect issuer of the other cluster; EKS allows one for each cluster. Tokens of other service
    accounts are refused. The association takes about 15 minutes, and every change replaces it.
    """

    def __init__(self, name: str, args: TrustedIssuerArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:TrustedIssuer", name, None, opts)
        IdentityProviderConfig(
            f"{name}-provider",
            cluster_name=args.cluster_name,
            oidc={
                "identity_provider_config_name": args.cluster,
                "issuer_url": args.issuer,
                "client_id": args.audience,
                "username_claim": "sub",
                "username_prefix": account_prefix(args.cluster),
                "required_claims": {"sub": CONTROLLER_ACCOUNT},
            },
            # A second one, made before the first is deleted, would be refused.
            opts=ResourceOptions(parent=self, delete_before_replace=True),
        )
        self.register_outputs({})
