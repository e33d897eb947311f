"""A network made for a stack on Google Cloud."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_gcp.compute import Network, Subnetwork

from holdfast.components.network.cloud_nat import CloudNat, CloudNatArgs
from holdfast.components.network.ordering import tied_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_gcp.compute import SubnetworkSecondaryIpRangeArgsDict

#: Names within one subnetwork, so they need no stack's name in them.
PODS_RANGE: Final = "pods"
SERVICES_RANGE: Final = "services"


@dataclass(frozen=True, kw_only=True)
class GcpNetworkArgs:
    """`nodes_cidr`, `pods_cidr` and `services_cidr` are private ranges that do not overlap.

    GKE gives each node a /24 of the pods' range, so a /17 is enough for 128 nodes. `label` is how the names in the
    project begin, up to 50 characters; None: the component's name.
    """

    region: str
    nodes_cidr: str
    pods_cidr: str
    services_cidr: str
    label: str | None = None


class GcpNetwork(ComponentResource):
    """A network with one subnetwork, whose nodes have no public address.

    Creates both, with secondary ranges for pods and Services and with private Google access, so that checkpoints and
    images do not pay for NAT, and a `CloudNat` for the rest of the internet. There is no firewall rule: GKE makes those
    of a cluster, and what a network has no rule for it keeps out. There are no flow logs: they hold who talked to whom,
    and cost by the gigabyte that trains.
    """

    network_id: Output[str]
    subnetwork_id: Output[str]
    pods_range: str
    services_range: str

    def __init__(self, name: str, args: GcpNetworkArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:GcpNetwork", name, None, opts)
        label = args.label or name
        network = Network(
            f"{name}-network",
            name=label,
            # A subnetwork of Google's choice in each region would overlap what is peered later.
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            opts=ResourceOptions(parent=self),
        )
        subnetwork = Subnetwork(
            f"{name}-nodes",
            name=f"{label}-nodes",
            network=network.id,
            region=args.region,
            ip_cidr_range=args.nodes_cidr,
            secondary_ip_ranges=_secondary_ranges(args),
            private_ip_google_access=True,
            opts=ResourceOptions(parent=self),
        )
        nat = CloudNat(
            f"{name}-nat",
            CloudNatArgs(network_id=network.id, subnetwork_id=subnetwork.id, region=args.region, label=label),
            opts=ResourceOptions(parent=self),
        )
        self.network_id = network.id
        # Nodes that drain still call out: the way to the internet goes only after all that stands here.
        self.subnetwork_id = tied_to(subnetwork.id, [nat.gateway])
        self.pods_range = PODS_RANGE
        self.services_range = SERVICES_RANGE
        self.register_outputs({"network_id": self.network_id, "subnetwork_id": self.subnetwork_id})


def _secondary_ranges(args: GcpNetworkArgs) -> Sequence[SubnetworkSecondaryIpRangeArgsDict]:
    return [
        {"range_name": PODS_RANGE, "ip_cidr_range": args.pods_cidr},
        {"range_name": SERVICES_RANGE, "ip_cidr_range": args.services_cidr},
    ]
