"""The IAM roles of Karpenter on EKS: its nodes' role and its controller's."""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws.eks import PodIdentityAssociation
from pulumi_aws.iam import InstanceProfile, Role, RolePolicy, RolePolicyAttachment

from pulumi_holdfast.aws.karpenter.controller_policies import (
    CONTROLLER_POLICIES,
    ControllerScope,
    controller_policy,
)
from pulumi_holdfast.aws.policy_documents import (
    NODE_POLICIES,
    Place,
    Workload,
    pod_identity_trust,
    service_trust,
)


@dataclass(frozen=True, kw_only=True)
class KarpenterNodeRoleArgs:
    """Where the role is; `instance_profile` also creates the profile that passes it to instances.

    Karpenter creates instance profiles itself, except in an isolated VPC, where IAM is unreachable.
    """

    place: Place
    instance_profile: bool


class KarpenterNodeRole(ComponentResource):
    """The role of Karpenter's nodes, separate from the system nodes' (`holdfast:index:KarpenterNodeRole`).

    Creates the role with three AWS managed policies and, with `instance_profile`, an instance profile. The
    stack creates its access entry.
    """

    role_name: Output[str]
    role_arn: Output[str]
    instance_profile: Output[str] | None

    def __init__(self, name: str, args: KarpenterNodeRoleArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:KarpenterNodeRole", name, None, opts)
        role = Role(
            f"{name}-role",
            assume_role_policy=service_trust(args.place.ec2_service()),
            description="Nodes that Karpenter starts",
            opts=ResourceOptions(parent=self),
        )
        for policy in NODE_POLICIES:
            RolePolicyAttachment(
                f"{name}-{policy}",
                role=role.name,
                policy_arn=args.place.aws_policy(policy),
                opts=ResourceOptions(parent=self),
            )
        self.role_name = role.name
        self.role_arn = role.arn
        self.instance_profile = None
        if args.instance_profile:
            profile = InstanceProfile(f"{name}-profile", role=role.name, opts=ResourceOptions(parent=self))
            self.instance_profile = profile.name
        self.register_outputs({"role_name": self.role_name})


@dataclass(frozen=True, kw_only=True)
class ControllerIdentityArgs:
    """The pods that get the role, and what it is limited to: the nodes' role, with its path, and the queue, by name."""

    place: Place
    workload: Workload
    node_role: Input[str]
    queue: Input[str]
    isolated: bool
    role_path: str


class ControllerIdentity(ComponentResource):
    """The role of Karpenter's controller (`holdfast:index:ControllerIdentity`).

    Creates the role, its six inline policies, which cannot be attached to anything else, and the association
    with the controller's pods.
    """

    def __init__(self, name: str, args: ControllerIdentityArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ControllerIdentity", name, None, opts)
        role = Role(
            f"{name}-role",
            assume_role_policy=pod_identity_trust(args.workload),
            description="Karpenter's controller",
            opts=ResourceOptions(parent=self),
        )
        scope = Output.all(args.node_role, args.queue).apply(lambda names: _scope(args, *names))
        policies = [
            RolePolicy(
                f"{name}-{policy}",
                role=role.name,
                policy=scope.apply(lambda known, policy=policy: controller_policy(policy, known)),
                opts=ResourceOptions(parent=self),
            )
            for policy in CONTROLLER_POLICIES
        ]
        PodIdentityAssociation(
            f"{name}-association",
            cluster_name=args.workload.cluster_name,
            namespace=args.workload.namespace,
            service_account=args.workload.service_account,
            role_arn=role.arn,
            # A controller that starts without its permissions exits and restarts slowly.
            opts=ResourceOptions(parent=self, depends_on=policies),
        )
        self.register_outputs({})


def _scope(args: ControllerIdentityArgs, node_role: str, queue: str) -> ControllerScope:
    return ControllerScope(
        place=args.place,
        cluster_name=args.workload.cluster_name,
        node_role=node_role,
        queue=queue,
        isolated=args.isolated,
        role_path=args.role_path,
    )
