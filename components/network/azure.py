"""A network made for a stack on Azure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_azure_native.network import NatGateway, PublicIPAddress, Subnet, VirtualNetwork

from holdfast.components.ordering import tied_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input


#: How nodes call out: by a NAT gateway on their subnet, or by its route table. AKS is told when the cluster is made, and
#: looks whether it is there.
Outbound: TypeAlias = Literal["userAssignedNATGateway", "userDefinedRouting"]


class NodeSubnet(Protocol):
    """A subnet of nodes. Pods have addresses of their own, which the network does not know.

    Whatever takes the subnet from here is there after, and gone before, all that its traffic goes through.
    """

    @property
    def subnet_id(self) -> Input[str]:
        """The subnet's id, with the subscription in it."""
        ...

    @property
    def outbound(self) -> Outbound:
        """How nodes call out."""
        ...

    @property
    def egress_cidrs(self) -> Sequence[Input[str]]:
        """The ranges that nodes are seen to call from, as far as that is known: `198.51.100.7/32`."""
        ...


@dataclass(frozen=True, kw_only=True)
class ExistingAzureNetwork:
    """A subnet in the cluster's region, by id, how its nodes call out, and from where they are then seen to call.

    `/subscriptions/<id>/resourceGroups/<group>/providers/Microsoft.Network/virtualNetworks/<name>/subnets/<name>`. Nothing
    in it is made or changed, beside the grant that lets the cluster put machines there: whoever owns it sees to the NAT
    gateway, or to the route table, which must be on the subnet before the cluster is.
    """

    subnet_id: str
    outbound: Outbound = "userAssignedNATGateway"
    egress_cidrs: tuple[str, ...] = ()


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


#: The name of the subnet within its network, so it needs no stack's name.
NODES_SUBNET: Final = "nodes"


@dataclass(frozen=True, kw_only=True)
class AzureNetworkArgs:
    """`cidr` is the range of the network, `nodes_cidr` that of its one subnet; None: all of it.

    `resource_group` is the name of the group; `label` how names in it begin.
    """

    location: str
    resource_group: Input[str]
    cidr: str
    nodes_cidr: str | None = None
    label: str


class AzureNetwork(ComponentResource):
    """A virtual network with one subnet, whose nodes have no public address.

    Creates both, and an `AzureNat` that is on the subnet before there is a cluster: AKS looks for it, and how nodes call
    out is fixed when the cluster is made. The subnet is a resource of its own, not part of the network's: what AKS or
    a person adds to the network is then no difference of it.
    """

    network_id: Output[str]
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
            address_space={"address_prefixes": [args.cidr]},
            opts=ResourceOptions(parent=self),
        )
        subnet = Subnet(
            f"{name}-nodes",
            subnet_name=NODES_SUBNET,
            resource_group_name=args.resource_group,
            virtual_network_name=network.name,
            address_prefix=args.nodes_cidr or args.cidr,
            nat_gateway={"id": nat.gateway.id},
            # A route of its own to storage, and free: checkpoints do not pay the gateway by the gigabyte.
            service_endpoints=[{"service": "Microsoft.Storage"}],
            opts=ResourceOptions(parent=self),
        )
        self.network_id = network.id
        self.subnet_id = tied_to(subnet.id, [nat])
        self.egress_cidrs = nat.egress_cidrs
        self.outbound: Outbound = "userAssignedNATGateway"
        self.register_outputs({"network_id": self.network_id, "subnet_id": self.subnet_id})
