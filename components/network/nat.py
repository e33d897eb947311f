"""The way from private subnets to the internet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Input, ResourceOptions
from pulumi_aws import ec2

if TYPE_CHECKING:
    from collections.abc import Mapping

_ANYWHERE: Final = "0.0.0.0/0"


@dataclass(frozen=True, kw_only=True)
class NatEgressArgs:
    """`gateways` are the zones that have one, and the range of the public subnet it stands in.

    `route_table_ids` are those of the private subnets by zone: each is led to the gateway of its own zone, or to the
    first where its zone has none. `label` is how names in the console begin.
    """

    vpc_id: Input[str]
    gateways: Mapping[str, str]
    route_table_ids: Mapping[str, Input[str]]
    label: str


class NatEgress(ComponentResource):
    """NAT gateways.

    Creates an internet gateway, and for each zone of `gateways` a public subnet with a NAT gateway and its address in
    it, where nothing else ever stands; and the default route of each private subnet.

    Outputs: `routes`, the default route of each private zone, behind which all of the way lies.
    """

    routes: Mapping[str, ec2.Route]

    def __init__(self, name: str, args: NatEgressArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:NatEgress", name, None, opts)
        internet = ec2.InternetGateway(
            f"{name}-internet",
            vpc_id=args.vpc_id,
            tags={"Name": args.label},
            opts=ResourceOptions(parent=self),
        )
        table = ec2.RouteTable(
            f"{name}-public-table",
            vpc_id=args.vpc_id,
            tags={"Name": f"{args.label}-public"},
            opts=ResourceOptions(parent=self),
        )
        outward = ec2.Route(
            f"{name}-public-route",
            route_table_id=table.id,
            destination_cidr_block=_ANYWHERE,
            gateway_id=internet.id,
            opts=ResourceOptions(parent=self),
        )
        gateways: dict[str, ec2.NatGateway] = {}
        for zone, cidr in args.gateways.items():
            subnet = ec2.Subnet(
                f"{name}-subnet-{zone}",
                vpc_id=args.vpc_id,
                availability_zone=zone,
                cidr_block=cidr,
                map_public_ip_on_launch=False,
                tags={"Name": f"{args.label}-public-{zone}"},
                opts=ResourceOptions(parent=self),
            )
            association = ec2.RouteTableAssociation(
                f"{name}-association-{zone}",
                subnet_id=subnet.id,
                route_table_id=table.id,
                opts=ResourceOptions(parent=self),
            )
            address = ec2.Eip(
                f"{name}-address-{zone}",
                domain="vpc",
                tags={"Name": f"{args.label}-{zone}"},
                # AWS detaches no internet gateway while an address is mapped through it.
                opts=ResourceOptions(parent=self, depends_on=[internet]),
            )
            gateways[zone] = ec2.NatGateway(
                f"{name}-gateway-{zone}",
                allocation_id=address.id,
                subnet_id=subnet.id,
                tags={"Name": f"{args.label}-{zone}"},
                # A gateway without a way out takes packets and loses them, at either end of its life.
                opts=ResourceOptions(parent=self, depends_on=[outward, association]),
            )
        first = next(iter(gateways.values()))
        self.routes = {
            zone: ec2.Route(
                f"{name}-route-{zone}",
                route_table_id=table_id,
                destination_cidr_block=_ANYWHERE,
                nat_gateway_id=gateways.get(zone, first).id,
                opts=ResourceOptions(parent=self),
            )
            for zone, table_id in args.route_table_ids.items()
        }
        self.register_outputs({})
