"""A VPC whose nodes have no public address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, Output, Resource, ResourceOptions
from pulumi_aws import ec2

from holdfast.components.network.cidrs import plan_subnets
from holdfast.components.network.services import s3_service

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, kw_only=True)
class PrivateVpcArgs:
    """`cidr` is a private range from /16 to /22, `zones` are the names of two to six zones of the region.

    `label` is how names in the console begin.
    """

    cidr: str
    zones: Sequence[str]
    region: str
    label: str


class PrivateVpc(ComponentResource):
    """A VPC with a private subnet in each zone, none of which leads anywhere but to S3.

    Creates the VPC, its default security group without a rule (whatever names no group lands in it, and AWS opens it to
    itself), and for each zone a subnet with a route table of its own, so that NAT in one zone or in each is a change of
    routes; and an S3 gateway endpoint on all of them, because checkpoints must not pay for NAT. There are no flow logs:
    they hold who talked to whom, and cost by the gigabyte that trains.

    Outputs: `vpc_id`, `vpc_cidr`; `subnets`, `route_tables` by zone; `routing`, what must be there for a zone's subnet
    to reach S3.
    """

    vpc_id: Output[str]
    vpc_cidr: str
    subnets: Mapping[str, ec2.Subnet]
    route_tables: Mapping[str, ec2.RouteTable]
    routing: Mapping[str, tuple[Resource, ...]]

    def __init__(self, name: str, args: PrivateVpcArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:PrivateVpc", name, None, opts)
        vpc = ec2.Vpc(
            f"{name}-vpc",
            cidr_block=args.cidr,
            # Without both, nodes cannot register with EKS and endpoints have no private names.
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags={"Name": args.label},
            opts=ResourceOptions(parent=self),
        )
        plan = plan_subnets(args.cidr, len(args.zones))
        ec2.DefaultSecurityGroup(f"{name}-default-group", vpc_id=vpc.id, opts=ResourceOptions(parent=self))
        self.subnets = {
            zone: ec2.Subnet(
                f"{name}-subnet-{zone}",
                vpc_id=vpc.id,
                availability_zone=zone,
                cidr_block=cidr,
                tags={"Name": f"{args.label}-private-{zone}"},
                opts=ResourceOptions(parent=self),
            )
            for zone, cidr in zip(args.zones, plan.private, strict=True)
        }
        self.route_tables = {
            zone: ec2.RouteTable(
                f"{name}-table-{zone}",
                vpc_id=vpc.id,
                tags={"Name": f"{args.label}-private-{zone}"},
                opts=ResourceOptions(parent=self),
            )
            for zone in args.zones
        }
        s3 = ec2.VpcEndpoint(
            f"{name}-s3",
            vpc_id=vpc.id,
            vpc_endpoint_type="Gateway",
            service_name=s3_service(args.region),
            route_table_ids=[table.id for table in self.route_tables.values()],
            tags={"Name": f"{args.label}-s3"},
            opts=ResourceOptions(parent=self),
        )
        self.routing = {
            zone: (
                s3,
                ec2.RouteTableAssociation(
                    f"{name}-association-{zone}",
                    subnet_id=subnet.id,
                    route_table_id=self.route_tables[zone].id,
                    opts=ResourceOptions(parent=self),
                ),
            )
            for zone, subnet in self.subnets.items()
        }
        self.vpc_id = vpc.id
        self.vpc_cidr = args.cidr
        self.register_outputs({"vpc_id": self.vpc_id})
