"""Where an Azure stack's nodes are: in a network made for it, or in a subnet that is brought."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, TypeAlias

from pydantic import Field, Tag

from holdfast.components.cluster.aks.access import PODS_CIDR, SERVICES_CIDR
from holdfast.infra.azure.config.fields import SUBNET_ALLOWED, SubnetId
from holdfast.infra.config.base import Section, discriminated_by
from holdfast.infra.config.fields import CIDR_ALLOWED, Cidr

_OF_A_BROUGHT_NETWORK = ("subnetId", "outbound", "egressCidrs")


class Outbound(StrEnum):
    """How nodes of a brought subnet call out, as AKS spells it."""

    NAT_GATEWAY = "userAssignedNATGateway"
    ROUTES = "userDefinedRouting"


class AzureNetworkSection(Section):
    """What both kinds of network are asked: the addresses that are the cluster's own, whatever network it is in."""

    pods_cidr: Cidr = Field(default=PODS_CIDR, description=CIDR_ALLOWED, examples=[PODS_CIDR])
    services_cidr: Cidr = Field(default=SERVICES_CIDR, description=CIDR_ALLOWED, examples=[SERVICES_CIDR])


class AzureNewNetwork(AzureNetworkSection):
    """A virtual network of the stack's own, with one subnet behind a NAT gateway."""

    fixes: ClassVar[Mapping[str, str]] = {
        "nodesCidr": "Write cidr: the network is the nodes' alone.",
        "zones": "Write it under systemNodes, or in a pool: a subnet is in all zones of its location.",
        "nat": "Leave it out: there is one NAT gateway, for all zones.",
        "vnetId": "Write subnetId, the whole id of a subnet.",
        "vnetSubnetId": "Write subnetId.",
    }

    cidr: Cidr = Field(default="10.40.0.0/16", description=CIDR_ALLOWED, examples=["10.40.0.0/16"])


class AzureExistingNetwork(AzureNetworkSection):
    """A subnet that is there already. Nothing of it is changed."""

    fixes: ClassVar[Mapping[str, str]] = {
        "cidr": "Leave it out: a subnet that is brought has its own; without subnetId a network is made.",
        "nodesCidr": "Leave it out: a subnet that is brought has its own.",
    }

    subnet_id: SubnetId = Field(
        description=SUBNET_ALLOWED,
        examples=[
            "/subscriptions/…/resourceGroups/network/providers/Microsoft.Network/virtualNetworks/shared/subnets/training"
        ],
    )
    outbound: Outbound = Field(
        default=Outbound.NAT_GATEWAY,
        description="userAssignedNATGateway or userDefinedRouting: what is on the subnet, and leads out",
        examples=["userAssignedNATGateway"],
    )
    egress_cidrs: tuple[Cidr, ...] = Field(
        default=(),
        max_length=10,
        description="a list of up to 10 blocks, the public addresses from which the subnet's nodes are seen to call",
        examples=["[198.51.100.7/32]"],
    )


def network_variant(value: object) -> type[AzureNewNetwork] | type[AzureExistingNetwork]:
    """The model that a value is meant for: whoever names a subnet, or how it leads out, brings it."""
    brought = isinstance(value, Mapping) and any(name in value for name in _OF_A_BROUGHT_NETWORK)
    return AzureExistingNetwork if brought else AzureNewNetwork


AzureNetworkConfig: TypeAlias = Annotated[
    Annotated[AzureNewNetwork, Tag(AzureNewNetwork.__name__)]
    | Annotated[AzureExistingNetwork, Tag(AzureExistingNetwork.__name__)],
    discriminated_by(network_variant),
]
