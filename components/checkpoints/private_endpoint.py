"""The private endpoint of a storage account: an address in the nodes' subnet, and the name under which pods find it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_azure_native.network import PrivateDnsZoneGroup, PrivateEndpoint
from pulumi_azure_native.privatedns import PrivateZone, VirtualNetworkLink

#: The zone in which Azure's DNS looks for a blob endpoint in a private network.
BLOB_ZONE: Final = "privatelink.blob.core.windows.net"

_BLOB: Final = "blob"
# The only location of private DNS zones.
_GLOBAL: Final = "global"


@dataclass(frozen=True, kw_only=True)
class BlobPrivateEndpointArgs:
    """Arguments of `BlobPrivateEndpoint`.

    The endpoint of the storage account `account_id` is created in `resource_group` and `location`, with an address of the
    subnet `subnet_id`. `dns_zone_id` is a zone with the name BLOB_ZONE that is linked to the network; None creates one, which
    fails in a network that is linked to such a zone already.
    """

    location: str
    resource_group: Input[str]
    subnet_id: Input[str]
    account_id: Input[str]
    dns_zone_id: str | None


class BlobPrivateEndpoint(ComponentResource):
    """The private endpoint of a storage account's blobs (`holdfast:index:BlobPrivateEndpoint`).

    Creates the PrivateEndpoint, its PrivateDnsZoneGroup and, without a zone of the user's, the PrivateZone with its link to the
    network. Clients in the network find the account by its usual name.
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
        PrivateDnsZoneGroup(
            f"{name}-names",
            private_dns_zone_group_name="default",
            resource_group_name=args.resource_group,
            private_endpoint_name=endpoint.name,
            private_dns_zone_configs=[
                {"name": _BLOB, "private_dns_zone_id": args.dns_zone_id or self._zone(name, args)}
            ],
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})

    def _zone(self, name: str, args: BlobPrivateEndpointArgs) -> Output[str]:
        zone = PrivateZone(
            f"{name}-zone",
            private_zone_name=BLOB_ZONE,
            resource_group_name=args.resource_group,
            location=_GLOBAL,
            opts=ResourceOptions(parent=self),
        )
        network = Output.from_input(args.subnet_id).apply(lambda subnet: subnet.rpartition("/subnets/")[0])
        VirtualNetworkLink(
            f"{name}-link",
            virtual_network_link_name=name,
            resource_group_name=args.resource_group,
            private_zone_name=zone.name,
            location=_GLOBAL,
            virtual_network={"id": network},
            registration_enabled=False,
            opts=ResourceOptions(parent=self),
        )
        return zone.id
