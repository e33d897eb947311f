"""The way from private subnets to AWS's services where there is none to the internet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, Input, ResourceOptions
from pulumi_aws import ec2, vpc

from holdfast.components.network.services import ISOLATED_SERVICES, interface_service

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, kw_only=True)
class InterfaceEndpointsArgs:
    """`subnet_ids` are one in each zone; `vpc_cidr` is let in; `label` is how names in the console begin."""

    vpc_id: Input[str]
    vpc_cidr: str
    subnet_ids: Sequence[Input[str]]
    region: str
    label: str


class InterfaceEndpoints(ComponentResource):
    """Interface endpoints for all that nodes, add-ons and Karpenter call.

    Creates an endpoint with private DNS for each service, with an address in each zone, and the security group before
    them, which lets the whole VPC in on 443: a managed node group's own security group is not known beforehand.

    Outputs: `endpoints`.
    """

    endpoints: Sequence[ec2.VpcEndpoint]

    def __init__(self, name: str, args: InterfaceEndpointsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:InterfaceEndpoints", name, None, opts)
        group = ec2.SecurityGroup(
            f"{name}-group",
            vpc_id=args.vpc_id,
            description="Interface endpoints",
            tags={"Name": f"{args.label}-endpoints"},
            opts=ResourceOptions(parent=self),
        )
        inward = vpc.SecurityGroupIngressRule(
            f"{name}-https",
            security_group_id=group.id,
            description="HTTPS from the VPC",
            cidr_ipv4=args.vpc_cidr,
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            opts=ResourceOptions(parent=self),
        )
        self.endpoints = [
            ec2.VpcEndpoint(
                f"{name}-{service}",
                vpc_id=args.vpc_id,
                vpc_endpoint_type="Interface",
                service_name=interface_service(args.region, service),
                subnet_ids=args.subnet_ids,
                security_group_ids=[group.id],
                private_dns_enabled=True,
                tags={"Name": f"{args.label}-{service}"},
                opts=ResourceOptions(parent=self, depends_on=[inward]),
            )
            for service in ISOLATED_SERVICES
        ]
        self.register_outputs({})
