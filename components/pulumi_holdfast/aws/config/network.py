"""The configuration of an AWS stack's network: a new VPC, an existing one, or that of an existing cluster."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, ClassVar, TypeAlias

from pydantic import Field

from pulumi_holdfast.aws.config.fields import ZONES_ALLOWED, SubnetId, VpcId, Zones
from pulumi_holdfast.config.base import Section, Variant
from pulumi_holdfast.config.existing import is_existing_cluster
from pulumi_holdfast.config.fields import CIDR_ALLOWED

_NOT_EXISTING_NETWORK_FIELDS = "Leave it out: an existing network has its own; without vpcId and privateSubnetIds the stack creates a network."


class Nat(StrEnum):
    """The number of NAT gateways."""

    SINGLE = "single"
    PER_ZONE = "per-zone"


class AwsNetworkSection(Section):
    """The fields of both kinds of network."""

    isolated: bool = Field(
        default=False,
        description="true for a network without internet access, false for one with it",
        examples=["true"],
    )


class AwsNewNetwork(AwsNetworkSection):
    """A new VPC for the stack."""

    # components/pulumi_holdfast/config/cidrs.py checks the range when it divides it.
    cidr: str = Field(default="10.40.0.0/16", description=CIDR_ALLOWED, examples=["10.40.0.0/16"])
    zones: Zones = Field(default=3, description=ZONES_ALLOWED, examples=["3"])
    nat: Nat | None = Field(
        default=None, description="single or per-zone, one of the two", examples=["single"]
    )

    def zone_names(self, available: Sequence[str]) -> tuple[str, ...]:
        """The first zones of those that the account has; fewer than configured if the account has fewer."""
        return tuple(available[: self.zones]) if isinstance(self.zones, int) else self.zones


class AwsExistingNetwork(AwsNetworkSection):
    """An existing VPC. The stack changes and tags nothing in it."""

    fixes: ClassVar[Mapping[str, str]] = dict.fromkeys(("cidr", "zones", "nat"), _NOT_EXISTING_NETWORK_FIELDS)

    vpc_id: VpcId = Field(description="the id of a VPC", examples=["vpc-0123456789abcdef0"])
    private_subnet_ids: tuple[SubnetId, ...] = Field(
        min_length=2,
        description="a list of two subnets or more, in two zones or more",
        examples=["[subnet-0123456789abcdef0, subnet-0123456789abcdef1]"],
    )


class AwsClusterNetwork(AwsNetworkSection):
    """The network of an existing cluster, with the subnets that it was created with."""


def default_network(values: Mapping[str, object]) -> AwsNewNetwork | AwsClusterNetwork:
    """The network of a document without one; `values` are its fields up to here."""
    return AwsClusterNetwork() if is_existing_cluster(values.get("cluster")) else AwsNewNetwork()


def network_variant(value: object) -> type[AwsNewNetwork] | type[AwsExistingNetwork]:
    """The section for a value: an existing network if it has a VPC or subnets."""
    existing = isinstance(value, Mapping) and ("vpcId" in value or "privateSubnetIds" in value)
    return AwsExistingNetwork if existing else AwsNewNetwork


AwsNetworkConfig: TypeAlias = Annotated[
    AwsNewNetwork | AwsExistingNetwork | AwsClusterNetwork, Variant(network_variant)
]
