"""A network made for a stack on AWS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pulumi import ComponentResource, Output, ResourceOptions

from holdfast.components.network.cidrs import plan_subnets
from holdfast.components.network.nat import NatEgress, NatEgressArgs
from holdfast.components.network.ordering import tied_to
from holdfast.components.network.private_vpc import PrivateVpc, PrivateVpcArgs

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, kw_only=True)
class AwsNetworkArgs:
    """`cidr` is a private range from /16 to /22, `zones` are the names of two to six zones of the region.

    `nat` is how many gateways lead to the internet: one, which is cheaper and takes every zone with it when its own is
    lost, or one in each zone. `label` is how names in the console begin; None: the component's name.
    """

    cidr: str
    zones: Sequence[str]
    region: str
    nat: Literal["single", "per-zone"] = "single"
    label: str | None = None


class AwsNetwork(ComponentResource):
    """A VPC whose nodes reach the internet by NAT, and S3 without it.

    Creates a `PrivateVpc` and its `NatEgress`. Nodes find their subnets by id: none carries a tag that something
    looks for. A zone that is added at the end leaves the other zones' subnets as they are.
    """

    vpc_id: Output[str]
    vpc_cidr: str
    private_subnet_ids: Sequence[Output[str]]

    def __init__(self, name: str, args: AwsNetworkArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:AwsNetwork", name, None, opts)
        label = args.label or name
        vpc = PrivateVpc(
            f"{name}-private",
            PrivateVpcArgs(cidr=args.cidr, zones=args.zones, region=args.region, label=label),
            opts=ResourceOptions(parent=self),
        )
        public = plan_subnets(args.cidr, len(args.zones)).public
        gateways = args.zones[:1] if args.nat == "single" else args.zones
        egress = NatEgress(
            f"{name}-nat",
            NatEgressArgs(
                vpc_id=vpc.vpc_id,
                gateways=dict(zip(gateways, public, strict=False)),
                route_table_ids={zone: table.id for zone, table in vpc.route_tables.items()},
                label=label,
            ),
            opts=ResourceOptions(parent=self),
        )
        self.vpc_id = vpc.vpc_id
        self.vpc_cidr = vpc.vpc_cidr
        # Karpenter's nodes drain through the NAT gateway: routes go only after all that stands in the subnets.
        self.private_subnet_ids = [
            tied_to(subnet.id, [*vpc.routing[zone], egress.routes[zone]])
            for zone, subnet in vpc.subnets.items()
        ]
        self.register_outputs({"vpc_id": self.vpc_id, "private_subnet_ids": self.private_subnet_ids})
