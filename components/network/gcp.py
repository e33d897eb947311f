"""A network made for a stack on Google Cloud."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_gcp.compute import Network, Router, RouterNat, Subnetwork

from holdfast.components.ordering import tied_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input
    from pulumi_gcp.compute import SubnetworkSecondaryIpRangeArgsDict


class VpcNativeNetwork(Protocol):
    """A subnetwork of nodes, with a secondary range for pods and one for Services.

    Whatever takes the subnetwork from here is there after, and gone before, all that its traffic goes through.
    """

    @property
    def network_id(self) -> Input[str]:
        """The network's id or link."""
        ...

    @property
    def subnetwork_id(self) -> Input[str]:
        """The subnetwork's id or link."""
        ...

    @property
    def pods_range(self) -> str:
        """The name of the secondary range of pods."""
        ...

    @property
    def services_range(self) -> str:
        """The name of the secondary range of Services."""
        ...


@dataclass(frozen=True, kw_only=True)
class ExistingGcpNetwork:
    """A network and a subnetwork in the cluster's region, by id or link, and the names of two of its secondary ranges.

    `projects/<project>/global/networks/<name>`, `projects/<project>/regions/<region>/subnetworks/<name>`: of another
    project for a shared VPC. Nothing in it is made or changed: whoever owns it sees to private Google access, without
    which nodes pull no image and reach no bucket, and to NAT.
    """

    network: str
    subnetwork: str
    pods_range: str
    services_range: str

    @property
    def network_id(self) -> str:
        """The network."""
        return self.network

    @property
    def subnetwork_id(self) -> str:
        """The subnetwork."""
        return self.subnetwork


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
