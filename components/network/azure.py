"""A network made for a stack on Azure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_azure_native.network import Subnet, VirtualNetwork

from holdfast.components.network.azure_nat import AzureNat, AzureNatArgs
from holdfast.components.network.ordering import tied_to

if TYPE_CHECKING:
    from pulumi import Input

    from holdfast.components.network.azure_contract import Outbound

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
