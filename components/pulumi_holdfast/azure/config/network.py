"""The configuration of an Azure stack's network: a new virtual network, an existing subnet, or an existing cluster's."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, TypeAlias

from pydantic import Field

from pulumi_holdfast.azure.config.fields import SUBNET_ALLOWED, SubnetId
from pulumi_holdfast.azure.control_plane.access import PODS_CIDR, SERVICES_CIDR
from pulumi_holdfast.config.base import Section, Variant
from pulumi_holdfast.config.existing import is_existing_cluster
from pulumi_holdfast.config.fields import CIDR_ALLOWED, Cidr

_EXISTING_NETWORK_FIELDS = ("subnetId", "outbound", "egressCidrs")


class Outbound(StrEnum):
    """The outbound type of an existing subnet; AKS's own values."""

    NAT_GATEWAY = "userAssignedNATGateway"
    ROUTES = "userDefinedRouting"


class AzureNetworkSection(Section):
    """The fields of both kinds of network: the cluster's own address ranges."""

    pods_cidr: Cidr = Field(default=PODS_CIDR, description=CIDR_ALLOWED, examples=[PODS_CIDR])
    services_cidr: Cidr = Field(default=SERVICES_CIDR, description=CIDR_ALLOWED, examples=[SERVICES_CIDR])


class AzureNewNetwork(AzureNetworkSection):
    """A new virtual network for the stack, with one subnet behind a NAT gateway."""

    fixes: ClassVar[Mapping[str, str]] = {
        "nodesCidr": "Write cidr: only nodes use the network.",
        "zones": "Move it to systemNodes or a pool: a subnet spans all zones of its location.",
        "nat": "Leave it out: the network has one NAT gateway for all zones.",
        "vnetId": "Write subnetId, the full id of a subnet.",
        "vnetSubnetId": "Write subnetId.",
    }

    cidr: Cidr = Field(default="10.40.0.0/16", description=CIDR_ALLOWED, examples=["10.40.0.0/16"])


class AzureExistingNetwork(AzureNetworkSection):
    """An existing subnet. The stack changes nothing in it."""

    fixes: ClassVar[Mapping[str, str]] = {
        "cidr": "Leave it out: an existing subnet has its own; without subnetId the stack creates a network.",
        "nodesCidr": "Leave it out: an existing subnet has its own.",
    }

    subnet_id: SubnetId = Field(
        description=SUBNET_ALLOWED,
        examples=[
            "/subscriptions/…/resourceGroups/network/providers/Microsoft.Network/virtualNetworks/shared/subnets/training"
        ],
    )
    outbound: Outbound = Field(
        default=Outbound.NAT_GATEWAY,
        description="userAssignedNATGateway or userDefinedRouting: the subnet's outbound type",
        examples=["userAssignedNATGateway"],
    )
    egress_cidrs: tuple[Cidr, ...] = Field(
        default=(),
        max_length=10,
        description="a list of up to 10 blocks: the public egress addresses of the subnet's nodes",
        examples=["[198.51.100.7/32]"],
    )


class AzureClusterNetwork(AzureNetworkSection):
    """The subnet of an existing cluster's system nodes."""


def default_network(values: Mapping[str, object]) -> AzureNewNetwork | AzureClusterNetwork:
    """The network of a document without one; `values` are its fields up to here."""
    return AzureClusterNetwork() if is_existing_cluster(values.get("cluster")) else AzureNewNetwork()


def network_variant(value: object) -> type[AzureNewNetwork] | type[AzureExistingNetwork]:
    """The section for a value: an existing network if it has a subnet or its outbound type."""
    existing = isinstance(value, Mapping) and any(name in value for name in _EXISTING_NETWORK_FIELDS)
    return AzureExistingNetwork if existing else AzureNewNetwork


AzureNetworkConfig: TypeAlias = Annotated[
    AzureNewNetwork | AzureExistingNetwork | AzureClusterNetwork, Variant(network_variant)
]
