"""The way from private nodes on Azure to the internet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_azure_native.network import NatGateway, PublicIPAddress

if TYPE_CHECKING:
    from pulumi import Input


@dataclass(frozen=True, kw_only=True)
class AzureNatArgs:
    """Where it is, and how names in the group begin."""

    location: str
    resource_group: Input[str]
    label: str


class AzureNat(ComponentResource):
    """A NAT gateway with one address of its own, which stays the same as long as the stack lives.

    Creates both. `gateway` is what a subnet names, `egress_cidrs` the ranges that its nodes are seen to call from.
    """

    gateway: NatGateway
    egress_cidrs: tuple[Output[str], ...]

    def __init__(self, name: str, args: AzureNatArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:AzureNat", name, None, opts)
        address = PublicIPAddress(
            f"{name}-address",
            public_ip_address_name=f"{args.label}-nat",
            resource_group_name=args.resource_group,
            location=args.location,
            sku={"name": "Standard", "tier": "Regional"},
            public_ip_allocation_method="Static",
            public_ip_address_version="IPv4",
            opts=ResourceOptions(parent=self),
        )
        self.gateway = NatGateway(
            f"{name}-gateway",
            nat_gateway_name=f"{args.label}-nat",
            resource_group_name=args.resource_group,
            location=args.location,
            sku={"name": "Standard"},
            public_ip_addresses=[{"id": address.id}],
            opts=ResourceOptions(parent=self),
        )
        self.egress_cidrs = (address.ip_address.apply(lambda known: f"{cast('str', known)}/32"),)
        self.register_outputs({})
