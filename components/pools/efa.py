"""The fabric between a pool's machines, for jobs on several nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, ResourceOptions
from pulumi_aws.ec2 import SecurityGroup
from pulumi_aws.vpc import SecurityGroupEgressRule, SecurityGroupIngressRule

if TYPE_CHECKING:
    from pulumi import Input, Output


@dataclass(frozen=True, kw_only=True)
class EfaFabricArgs:
    """`vpc_id` is the network of the machines."""

    vpc_id: Input[str]


class EfaFabric(ComponentResource):
    """What lets Elastic Fabric Adapters talk to each other.

    Creates a security group whose members may send anything to each other and nothing to anyone else, to stand beside
    the cluster's own. An adapter passes by the operating system only within such a group: to it, leave to send to any
    address is not leave to send to the group.
    """

    security_group_id: Output[str]

    def __init__(self, name: str, args: EfaFabricArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:EfaFabric", name, None, opts)
        group = SecurityGroup(
            f"{name}-members",
            vpc_id=args.vpc_id,
            description="Fabric traffic between the machines of a pool",
            opts=ResourceOptions(parent=self),
        )
        SecurityGroupIngressRule(
            f"{name}-from-members",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            opts=ResourceOptions(parent=self),
        )
        SecurityGroupEgressRule(
            f"{name}-to-members",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            opts=ResourceOptions(parent=self),
        )
        self.security_group_id = group.id
        self.register_outputs({"security_group_id": self.security_group_id})
