"""A network on AWS without a way to the internet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, Output, ResourceOptions

from holdfast.components.network.endpoints import InterfaceEndpoints, InterfaceEndpointsArgs
from holdfast.components.network.ordering import tied_to
from holdfast.components.network.private_vpc import PrivateVpc, PrivateVpcArgs

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, kw_only=True)
class AwsIsolatedNetworkArgs:
    """`cidr` is a private range from /16 to /22, `zones` are the names of two to six zones of the region.

    `label` is how names in the console begin; None: the component's name.
    """

    cidr: str
    zones: Sequence[str]
    region: str
    label: str | None = None


class AwsIsolatedNetwork(ComponentResource):
    """A VPC from which nothing but AWS's services is reached.

    Creates a `PrivateVpc`, without an internet or NAT gateway, and its `InterfaceEndpoints`. IAM and the price list
    have no endpoint, public registries are out of reach: Karpenter runs in its isolated mode, images come from a mirror.
    """

    vpc_id: Output[str]
    vpc_cidr: str
    private_subnet_ids: Sequence[Output[str]]

    def __init__(self, name: str, args: AwsIsolatedNetworkArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:AwsIsolatedNetwork", name, None, opts)
        label = args.label or name
        vpc = PrivateVpc(
            f"{name}-private",
            PrivateVpcArgs(cidr=args.cidr, zones=args.zones, region=args.region, label=label),
            opts=ResourceOptions(parent=self),
        )
        services = InterfaceEndpoints(
            f"{name}-endpoints",
            InterfaceEndpointsArgs(
                vpc_id=vpc.vpc_id,
                vpc_cidr=vpc.vpc_cidr,
                subnet_ids=[subnet.id for subnet in vpc.subnets.values()],
                region=args.region,
                label=label,
            ),
            opts=ResourceOptions(parent=self),
        )
        self.vpc_id = vpc.vpc_id
        self.vpc_cidr = vpc.vpc_cidr
        # A node that drains still asks EC2 and the queue: endpoints go only after all that stands in the subnets.
        self.private_subnet_ids = [
            tied_to(subnet.id, [*vpc.routing[zone], *services.endpoints])
            for zone, subnet in vpc.subnets.items()
        ]
        self.register_outputs({"vpc_id": self.vpc_id, "private_subnet_ids": self.private_subnet_ids})
