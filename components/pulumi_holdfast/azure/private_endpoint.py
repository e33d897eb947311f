"""Private endpoints of storage accounts: addresses in the nodes' subnet, and the names under which pods find them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_azure_native.network import PrivateDnsZoneGroup, PrivateEndpoint
from pulumi_azure_native.privatedns import PrivateZone, ResolutionPolicy, VirtualNetworkLink

from pulumi_holdfast.kubernetes.kubernetes_object import tied_to

#: The zone in which Azure's DNS looks for a blob endpoint in a private network.
BLOB_ZONE: Final = "privatelink.blob.core.windows.net"

_BLOB: Final = "blob"
# The only location of private DNS zones.
_GLOBAL: Final = "global"


@dataclass(frozen=True, kw_only=True)
class BlobZoneArgs:
    """Arguments of `BlobZone`: it is created in `resource_group`, for the network of the subnet `subnet_id`."""

    resource_group: Input[str]
    subnet_id: Input[str]


class BlobZone(ComponentResource):
    """The DNS zone BLOB_ZONE of a network (`holdfast:index:BlobZone`).

    Creates the PrivateZone and its VirtualNetworkLink, which fails in a network that is linked to such a zone already. Accounts
    without a private endpoint in this network keep their public addresses, also if they have one in another network.
    """

    def __init__(self, name: str, args: BlobZoneArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:BlobZone", name, None, opts)
        zone = PrivateZone(
            f"{name}-zone",
            private_zone_name=BLOB_ZONE,
            resource_group_name=args.resource_group,
            location=_GLOBAL,
            opts=ResourceOptions(parent=self),
        )
        network = Output.from_input(args.subnet_id).apply(lambda subnet: subnet.rpartition("/subnets/")[0])
        link = VirtualNetworkLink(
            f"{name}-link",
            virtual_network_link_name=name,
            resource_group_name=args.resource_group,
            private_zone_name=zone.name,
            location=_GLOBAL,
            virtual_network={"id": network},
            registration_enabled=False,
            # Otherwise each account with an endpoint in another network would have no address here.
            resolution_policy=ResolutionPolicy.NX_DOMAIN_REDIRECT,
            opts=ResourceOptions(parent=self),
        )
        self.zone_id = tied_to(zone.id, [link])
        self.register_outputs({"zone_id": self.zone_id})


@dataclass(frozen=True, kw_only=True)
class BlobPrivateEndpointArgs:
    """Arguments of `BlobPrivateEndpoint`.

    The endpoint of the storage account `account_id` is created in `resource_group` and `location`, with an address of the
    subnet `subnet_id`. The account may be in another location or subscription. `dns_zone_id` is a zone with the name BLOB_ZONE that
    is linked to the network.
    """

    location: str
    resource_group: Input[str]
    subnet_id: Input[str]
    account_id: Input[str]
    dns_zone_id: Input[str]


class BlobPrivateEndpoint(ComponentResource):
    """The private endpoint of a storage account's blobs (`holdfast:index:BlobPrivateEndpoint`).

    Creates the PrivateEndpoint and its PrivateDnsZoneGroup, the record in the zone. Clients in the network find the account by its
    usual name. `name` has up to 64 characters, and is that of the endpoint.
    """

    def __init__(self, name: str, args: BlobPrivateEndpointArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:BlobPrivateEndpoint", name, None, opts)
        endpoint = PrivateEndpoint(
            f"{name}-endpoint",
            private_endpoint_name=name,
            resource_group_name=args.resource_group,
            location=args.location,
            subnet={"id": args.subnet_id},
            private_link_service_connections=[
                {"name": _BLOB, "private_link_service_id": args.account_id, "group_ids": [_BLOB]}
            ],
            opts=ResourceOptions(parent=self),
        )
        self.names = PrivateDnsZoneGroup(
            f"{name}-names",
            private_dns_zone_group_name="default",
            resource_group_name=args.resource_group,
            private_endpoint_name=endpoint.name,
            private_dns_zone_configs=[{"name": _BLOB, "private_dns_zone_id": args.dns_zone_id}],
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
