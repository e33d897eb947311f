"""Networks on Azure: a new one with NAT, or an existing one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast

import pulumi
from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_azure_native.network import NatGateway, PublicIPAddress, Subnet, VirtualNetwork

from pulumi_holdfast.azure.config.sections import AzureClusterNetwork, AzureExistingNetwork
from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.kubernetes_object import tied_to

if TYPE_CHECKING:
    from pulumi_holdfast.azure.config.sections import AzurePlatform

#: How nodes reach the internet: by a NAT gateway on their subnet, or by its route table. AKS checks on
#: creation that it exists.
Outbound: TypeAlias = Literal["userAssignedNATGateway", "userDefinedRouting"]


class NodeSubnet(Protocol):
    """A subnet for nodes. Pods use an overlay network with their own addresses.

    Resources that use the subnet are created after the resources of its egress and deleted before them.
    """

    @property
    def subnet_id(self) -> Input[str]:
        """The subnet's resource ID."""
        ...

    @property
    def joined_id(self) -> Input[str]:
        """The resource that the cluster's identity may join: the network if the stack made it, otherwise the subnet."""
        ...

    @property
    def outbound(self) -> Outbound:
        """How nodes reach the internet."""
        ...

    @property
    def egress_cidrs(self) -> Sequence[Input[str]]:
        """The known source ranges of the nodes' egress (`198.51.100.7/32`)."""
        ...


@dataclass(frozen=True, kw_only=True)
class ExistingAzureNetwork:
    """An existing subnet in the cluster's region, its kind of egress and its source ranges.

    `subnet_id` is
    `/subscriptions/<id>/resourceGroups/<group>/providers/Microsoft.Network/virtualNetworks/<name>/subnets/<name>`.
    Nothing in it is created or changed, except for a role assignment for the cluster. Its owner provides the
    NAT gateway or the route table before the cluster is created.
    """

    subnet_id: Input[str]
    outbound: Outbound = "userAssignedNATGateway"
    egress_cidrs: tuple[str, ...] = ()

    @property
    def joined_id(self) -> Input[str]:
        """The subnet: the rest of the network is not the stack's."""
        return self.subnet_id


@dataclass(frozen=True, kw_only=True)
class AzureNatArgs:
    """Its location and resource group, and the prefix of names."""

    location: str
    resource_group: Input[str]
    label: str


class AzureNat(ComponentResource):
    """A NAT gateway with one public address, constant for the life of the stack (`holdfast:index:AzureNat`).

    Creates both. `gateway` is for the subnet, `egress_cidrs` are the source ranges of its nodes.
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


#: The subnet's name is unique within its network.
NODES_SUBNET: Final = "nodes"


@dataclass(frozen=True, kw_only=True)
class AzureNetworkArgs:
    """`cidr` is the range of the network, `nodes_cidr` the range of its subnet; None: all of it.

    `further` are more blocks of the network, for other subnets. `resource_group` is the group's name, `label` the prefix of names.
    """

    location: str
    resource_group: Input[str]
    cidr: str
    further: Sequence[str] = ()
    nodes_cidr: str | None = None
    label: str


class AzureNetwork(ComponentResource):
    """A virtual network with one subnet for private nodes (`holdfast:index:AzureNetwork`).

    Creates both and an `AzureNat`, which must be on the subnet before the cluster: AKS checks for it, and the
    kind of egress is immutable. The subnet is a resource of its own, so that additions of AKS or users to the
    network show no difference.
    """

    network_id: Output[str]
    joined_id: Output[str]
    subnet_id: Output[str]
    egress_cidrs: tuple[Output[str], ...]

    def __init__(self, name: str, args: AzureNetworkArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:AzureNetwork", name, None, opts)
        nat = AzureNat(
            f"{name}-nat",
            AzureNatArgs(location=args.location, resource_group=args.resource_group, label=args.label),
            opts=ResourceOptions(parent=self),
        )
        network = VirtualNetwork(
            f"{name}-network",
            virtual_network_name=args.label,
            resource_group_name=args.resource_group,
            location=args.location,
            address_space={"address_prefixes": [args.cidr, *args.further]},
            opts=ResourceOptions(parent=self),
        )
        subnet = Subnet(
            f"{name}-nodes",
            subnet_name=NODES_SUBNET,
            resource_group_name=args.resource_group,
            virtual_network_name=network.name,
            address_prefix=args.nodes_cidr or args.cidr,
            nat_gateway={"id": nat.gateway.id},
            # Direct and free: checkpoints bypass the NAT gateway, which bills by the gigabyte.
            service_endpoints=[{"service": "Microsoft.Storage"}],
            opts=ResourceOptions(parent=self),
        )
        self.network_id = network.id
        # The private DNS zone that AKS makes for a private cluster is linked to the network.
        self.joined_id = network.id
        self.subnet_id = tied_to(subnet.id, [nat])
        self.egress_cidrs = nat.egress_cidrs
        self.outbound: Outbound = "userAssignedNATGateway"
        self.register_outputs({"network_id": self.network_id, "subnet_id": self.subnet_id})


def network_of(
    platform: AzurePlatform, resource_group: Input[str], label: str, *, parent: pulumi.Resource
) -> NodeSubnet:
    """The network of the cluster `parent`; its names in the resource group start with `label`."""
    config = platform.network
    if isinstance(config, AzureClusterNetwork):
        raise TypeError("an existing cluster has a network")
    if isinstance(config, AzureExistingNetwork):
        return ExistingAzureNetwork(
            subnet_id=config.subnet_id, outbound=config.outbound.value, egress_cidrs=config.egress_cidrs
        )
    return AzureNetwork(
        naming.part(parent.pulumi_resource_name, "network"),
        AzureNetworkArgs(
            location=platform.location,
            resource_group=resource_group,
            cidr=config.cidr,
            further=[volume.cidr for volume in platform.storage if volume.cidr is not None],
            label=label,
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )
