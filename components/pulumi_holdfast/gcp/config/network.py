"""The configuration of a GCP stack's network: a new network, an existing one, or that of an existing cluster."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, TypeAlias

from pydantic import Field

from pulumi_holdfast.config.base import Section, Variant
from pulumi_holdfast.config.existing import is_existing_cluster
from pulumi_holdfast.config.fields import CIDR_ALLOWED, Cidr
from pulumi_holdfast.gcp.config.fields import (
    NETWORK_ALLOWED,
    RANGE_ALLOWED,
    SUBNETWORK_ALLOWED,
    NetworkName,
    RangeName,
    SubnetworkName,
)

_EXISTING_NETWORK_FIELDS = ("network", "subnetwork", "podsRange", "servicesRange")
_NEW_NETWORK_FIELDS = ("nodesCidr", "podsCidr", "servicesCidr")


class GcpNewNetwork(Section):
    """A new network for the stack: one subnetwork, with ranges for pods and Services."""

    fixes: ClassVar[Mapping[str, str]] = {
        "cidr": "Write nodesCidr, podsCidr and servicesCidr.",
        "zones": "Move it to cluster: a subnetwork spans all zones of its region.",
        "nat": "Leave it out: Cloud NAT serves all zones of a region.",
    }

    nodes_cidr: Cidr = Field(default="10.40.0.0/20", description=CIDR_ALLOWED, examples=["10.40.0.0/20"])
    pods_cidr: Cidr = Field(default="10.44.0.0/14", description=CIDR_ALLOWED, examples=["10.44.0.0/14"])
    services_cidr: Cidr = Field(default="10.40.16.0/20", description=CIDR_ALLOWED, examples=["10.40.16.0/20"])


class GcpExistingNetwork(Section):
    """An existing subnetwork. The stack changes nothing in it."""

    fixes: ClassVar[Mapping[str, str]] = dict.fromkeys(
        _NEW_NETWORK_FIELDS,
        "Leave it out: an existing network has its own; without network and subnetwork the stack creates one.",
    )

    network: NetworkName = Field(description=NETWORK_ALLOWED, examples=["shared"])
    subnetwork: SubnetworkName = Field(description=SUBNETWORK_ALLOWED, examples=["training"])
    pods_range: RangeName = Field(description=RANGE_ALLOWED, examples=["pods"])
    services_range: RangeName = Field(description=RANGE_ALLOWED, examples=["services"])


class GcpClusterNetwork(Section):
    """The network of an existing cluster."""


def default_network(values: Mapping[str, object]) -> GcpNewNetwork | GcpClusterNetwork:
    """The network of a document without one; `values` are its fields up to here."""
    return GcpClusterNetwork() if is_existing_cluster(values.get("cluster")) else GcpNewNetwork()


def network_variant(value: object) -> type[GcpNewNetwork] | type[GcpExistingNetwork]:
    """The section for a value: an existing network if it has a network or a part of one."""
    existing = isinstance(value, Mapping) and any(name in value for name in _EXISTING_NETWORK_FIELDS)
    return GcpExistingNetwork if existing else GcpNewNetwork


GcpNetworkConfig: TypeAlias = Annotated[
    GcpNewNetwork | GcpExistingNetwork | GcpClusterNetwork, Variant(network_variant)
]
