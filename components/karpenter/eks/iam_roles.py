"""Who Karpenter's controller is in AWS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws.eks import PodIdentityAssociation
from pulumi_aws.iam import InstanceProfile, Role, RolePolicy, RolePolicyAttachment

from holdfast.components.iam.aws import NODE_POLICIES, pod_identity_trust, service_trust
from holdfast.components.karpenter.eks.controller_policies import (
    CONTROLLER_POLICIES,
    ControllerScope,
    controller_policy,
)

if TYPE_CHECKING:
    from holdfast.components.iam.aws import Place, Workload


@dataclass(frozen=True, kw_only=True)
class KarpenterNodeRoleArgs:
    """Where the role lives; with `instance_profile` also the profile that hands it to instances.

    Karpenter makes instance profiles itself, but not where it cannot reach IAM, which has no endpoint in a VPC.
    """

    place: Place
    instance_profile: bool


class KarpenterNodeRole(ComponentResource):
    """The role of Karpenter's nodes, which is not the system nodes' role.

    Creates the role with three of AWS's own policies and, if asked, an instance profile. Its access entry is the
    cluster's to make.
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
    """The pods that get the identity, and what it is confined to: the nodes' role and the queue, by name."""

    place: Place
    workload: Workload
    node_role: Input[str]
    queue: Input[str]
    isolated: bool


class ControllerIdentity(ComponentResource):
    """The role of Karpenter's controller.

    Creates the role, six policies inside it, so that nothing else can be given them, and the association by which the
    controller's pods, and no others, get it.
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
            # A controller that is up before it may do anything ends, and is slow to come again.
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
    )
