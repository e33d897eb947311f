"""The way from private nodes on Google Cloud to the internet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, ResourceOptions
from pulumi_gcp.compute import Router, RouterNat

if TYPE_CHECKING:
    from pulumi import Input


@dataclass(frozen=True, kw_only=True)
class CloudNatArgs:
    """The one subnetwork that is let out, and how names in the project begin."""

    network_id: Input[str]
    subnetwork_id: Input[str]
    region: str
    label: str


class CloudNat(ComponentResource):
    """Cloud NAT for the nodes and pods of one subnetwork; nothing else in the network gets out by it.

    Creates a router and the gateway. The gateway is Google's own, in every zone, with addresses that it takes as it
    needs them. `gateway` is what the way out ends with.
    """

    gateway: RouterNat

    def __init__(self, name: str, args: CloudNatArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CloudNat", name, None, opts)
        router = Router(
            f"{name}-router",
            name=args.label,
            network=args.network_id,
            region=args.region,
            opts=ResourceOptions(parent=self),
        )
        self.gateway = RouterNat(
            f"{name}-gateway",
            name=args.label,
            router=router.name,
            region=args.region,
            nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
            # Pods too: GKE leaves their addresses as they are on the way out of a node.
            subnetworks=[{"name": args.subnetwork_id, "source_ip_ranges_to_nats": ["ALL_IP_RANGES"]}],
            # A node is given 64 ports to one destination otherwise, which its pods use up when they pull or download
            # together. With one mapping for all destinations ports cannot be given out as they are needed.
            enable_dynamic_port_allocation=True,
            enable_endpoint_independent_mapping=False,
            # What is dropped for want of a port is seen nowhere else.
            log_config={"enable": True, "filter": "ERRORS_ONLY"},
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
