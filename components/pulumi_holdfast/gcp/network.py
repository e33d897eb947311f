"""Networks on Google Cloud: a new one with NAT, or an existing one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import pulumi
from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_gcp.compute import (
    Firewall,
    Network,
    Router,
    RouterNat,
    Subnetwork,
    SubnetworkSecondaryIpRangeArgsDict,
)

from pulumi_holdfast.config import naming
from pulumi_holdfast.gcp.config.sections import GcpClusterNetwork, GcpExistingNetwork
from pulumi_holdfast.kubernetes.kubernetes_object import tied_to

if TYPE_CHECKING:
    from pulumi_holdfast.gcp.config.sections import GcpPlatform


class VpcNativeNetwork(Protocol):
    """A subnetwork for nodes, with secondary ranges for pods and Services.

    Resources that use the subnetwork are created after the resources of its egress and deleted before them.
    """

    @property
    def network_id(self) -> Input[str]:
        """The network's ID or link."""
        ...

    @property
    def subnetwork_id(self) -> Input[str]:
        """The subnetwork's ID or link."""
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
    """An existing network and subnetwork in the cluster's region, and the names of its secondary ranges.

    `projects/<project>/global/networks/<name>` and `projects/<project>/regions/<region>/subnetworks/<name>`;
    the project of a shared VPC may be another one. Nothing in it is created or changed. Its owner provides
    NAT and private Google access, without which nodes reach neither registries nor buckets.
    """

    network: Input[str]
    subnetwork: Input[str]
    pods_range: str
    services_range: str

    @property
    def network_id(self) -> Input[str]:
        """The network."""
        return self.network

    @property
    def subnetwork_id(self) -> Input[str]:
        """The subnetwork."""
        return self.subnetwork


@dataclass(frozen=True, kw_only=True)
class CloudNatArgs:
    """The subnetwork that gets egress, and the prefix of names."""

    network_id: Input[str]
    subnetwork_id: Input[str]
    region: str
    label: str


class CloudNat(ComponentResource):
    """Cloud NAT for the nodes and pods of one subnetwork (`holdfast:index:CloudNat`).

    Creates a router and the gateway, which Google runs in every zone with addresses that it allocates as
    needed. `gateway` is the resource on which egress depends.
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
            # Pods too: GKE does not translate their addresses to the node's.
            subnetworks=[{"name": args.subnetwork_id, "source_ip_ranges_to_nats": ["ALL_IP_RANGES"]}],
            # The default of 64 ports per node and destination is too low for nodes that pull images in
            # parallel. Endpoint-independent mapping rules dynamic allocation out.
            enable_dynamic_port_allocation=True,
            enable_endpoint_independent_mapping=False,
            # Packets that are dropped for lack of a port are visible only here.
            log_config={"enable": True, "filter": "ERRORS_ONLY"},
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


#: The port of the operators' admission webhooks, which the API server calls at the addresses of their pods. GKE's own
#: rules for private nodes let it reach only 443 and 10250.
WEBHOOK_PORT: Final = 9443

#: The names are unique within the subnetwork.
PODS_RANGE: Final = "pods"
SERVICES_RANGE: Final = "services"


def subnetwork_name(label: str) -> str:
    """The name of the subnetwork of a network whose names begin with `label`."""
    return f"{label}-nodes"


@dataclass(frozen=True, kw_only=True)
class GcpNetworkArgs:
    """`nodes_cidr`, `pods_cidr` and `services_cidr` are private ranges that do not overlap.

    GKE gives each node a /24 of the pods' range: a /17 has room for 128 nodes. `label` is the prefix of
    names, up to 50 characters; None: the component's name.
    """

    region: str
    nodes_cidr: str
    pods_cidr: str
    services_cidr: str
    label: str | None = None


class GcpNetwork(ComponentResource):
    """A network with one subnetwork for private nodes (`holdfast:index:GcpNetwork`).

    Creates both with secondary ranges for pods and Services and with private Google access, so that
    checkpoints and images bypass NAT, and a `CloudNat` for the rest of the internet. One firewall rule lets the
    control plane, whose endpoint has an address in the nodes' range, call webhooks. GKE creates the other rules
    of a cluster, and all other traffic is denied. There are no flow logs: they are billed by the gigabyte of
    traffic and contain its metadata.
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
            # Automatic subnetworks in all regions would overlap networks that are peered later.
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            opts=ResourceOptions(parent=self),
        )
        subnetwork = Subnetwork(
            f"{name}-nodes",
            name=subnetwork_name(label),
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
        webhooks = Firewall(
            f"{name}-webhooks",
            name=f"{label}-webhooks",
            description="The GKE control plane calls the admission webhooks of operators",
            network=network.id,
            direction="INGRESS",
            source_ranges=[args.nodes_cidr],
            allows=[{"protocol": "tcp", "ports": [str(WEBHOOK_PORT)]}],
            opts=ResourceOptions(parent=self),
        )
        self.network_id = network.id
        # Draining nodes still need egress, and their operators webhooks: both are deleted after everything in
        # the subnetwork.
        self.subnetwork_id = tied_to(subnetwork.id, [nat.gateway, webhooks])
        self.pods_range = PODS_RANGE
        self.services_range = SERVICES_RANGE
        self.register_outputs({"network_id": self.network_id, "subnetwork_id": self.subnetwork_id})


def _secondary_ranges(args: GcpNetworkArgs) -> Sequence[SubnetworkSecondaryIpRangeArgsDict]:
    return [
        {"range_name": PODS_RANGE, "ip_cidr_range": args.pods_cidr},
        {"range_name": SERVICES_RANGE, "ip_cidr_range": args.services_cidr},
    ]


def network_of(platform: GcpPlatform, label: str, *, parent: pulumi.Resource) -> VpcNativeNetwork:
    """The network of the cluster `parent`; its names in the project start with `label`."""
    config = platform.network
    if isinstance(config, GcpClusterNetwork):
        raise TypeError("an existing cluster has a network")
    if isinstance(config, GcpExistingNetwork):
        return ExistingGcpNetwork(
            network=config.network,
            subnetwork=config.subnetwork,
            pods_range=config.pods_range,
            services_range=config.services_range,
        )
    return GcpNetwork(
        naming.part(parent.pulumi_resource_name, "network"),
        GcpNetworkArgs(
            region=platform.region,
            nodes_cidr=config.cidr,
            pods_cidr=config.pods_cidr,
            services_cidr=config.services_cidr,
            label=label,
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )
