"""Where an AWS stack's nodes are: in a network made for it, or in one that is brought."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, ClassVar, TypeAlias

from pydantic import Field, Tag

from holdfast.infra.aws.config.fields import ZONES_ALLOWED, SubnetId, VpcId, Zones
from holdfast.infra.config.base import Section, discriminated_by
from holdfast.infra.config.fields import CIDR_ALLOWED

_NOT_OF_A_BROUGHT_NETWORK = (
    "Leave it out: a network that is brought has its own; without vpcId and privateSubnetIds one is made."
)


class Nat(StrEnum):
    """How many NAT gateways lead to the internet."""

    SINGLE = "single"
    PER_ZONE = "per-zone"


class AwsNetworkSection(Section):
    """What both kinds of network are asked."""

    isolated: bool = Field(
        default=False,
        description="true for a network without a way to the internet, false for one with",
        examples=["true"],
    )


class AwsNewNetwork(AwsNetworkSection):
    """A VPC of the stack's own."""

    # What a VPC can have for its range is known where it is divided: components/network/cidrs.py.
    cidr: str = Field(default="10.40.0.0/16", description=CIDR_ALLOWED, examples=["10.40.0.0/16"])
    zones: Zones = Field(default=3, description=ZONES_ALLOWED, examples=["3"])
    nat: Nat | None = Field(
        default=None, description="single or per-zone, one of the two", examples=["single"]
    )

    def zone_names(self, available: Sequence[str]) -> tuple[str, ...]:
        """The zones to use of those that the account has, in their order; fewer than asked for where it has fewer."""
        return tuple(available[: self.zones]) if isinstance(self.zones, int) else self.zones


class AwsExistingNetwork(AwsNetworkSection):
    """A VPC that is there already. Nothing in it is changed or tagged."""

    fixes: ClassVar[Mapping[str, str]] = dict.fromkeys(("cidr", "zones", "nat"), _NOT_OF_A_BROUGHT_NETWORK)

    vpc_id: VpcId = Field(description="the id of a VPC", examples=["vpc-0123456789abcdef0"])
    private_subnet_ids: tuple[SubnetId, ...] = Field(
        min_length=2,
        description="a list of two subnets or more, in two zones or more",
        examples=["[subnet-0123456789abcdef0, subnet-0123456789abcdef1]"],
    )


def network_variant(value: object) -> type[AwsNewNetwork] | type[AwsExistingNetwork]:
    """The model that a value is meant for: whoever names a VPC or subnets brings them."""
    brought = isinstance(value, Mapping) and ("vpcId" in value or "privateSubnetIds" in value)
    return AwsExistingNetwork if brought else AwsNewNetwork


AwsNetworkConfig: TypeAlias = Annotated[
    Annotated[AwsNewNetwork, Tag(AwsNewNetwork.__name__)]
    | Annotated[AwsExistingNetwork, Tag(AwsExistingNetwork.__name__)],
    discriminated_by(network_variant),
]
