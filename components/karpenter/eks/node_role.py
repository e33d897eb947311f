"""The role of the nodes that Karpenter starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, ResourceOptions
from pulumi_aws.iam import InstanceProfile, Role, RolePolicyAttachment

from holdfast.components.iam.aws import NODE_POLICIES, service_trust

if TYPE_CHECKING:
    from pulumi import Output

    from holdfast.components.iam.aws import Place


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
