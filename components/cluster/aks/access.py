"""From where the API server is reached. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input
    from pulumi_azure_native.containerservice import ManagedClusterAPIServerAccessProfileArgsDict


@dataclass(frozen=True, kw_only=True)
class PublicAccess:
    """By a public address, from these ranges (`203.0.113.0/24`) and from the nodes' own.

    The ranges include whoever runs `pulumi`. Raises ValueError for no range at all: AKS takes that for the whole
    internet.
    """

    cidrs: Sequence[str]

    def __post_init__(self) -> None:
        """Refuse what AKS would take for everybody."""
        if not self.cidrs:
            raise ValueError("cidrs is empty: AKS would let in the whole internet; name a range")

    def as_profile(self, egress_cidrs: Sequence[Input[str]]) -> ManagedClusterAPIServerAccessProfileArgsDict:
        """How AKS spells it; nodes come to the public address too, by the way that they call out.

        `egress_cidrs` are the ranges that nodes are seen to call from. AKS adds those of its own load balancer by itself,
        and no other: nodes behind a NAT gateway that is left out never join.
        """
        return {"enable_private_cluster": False, "authorized_ip_ranges": [*self.cidrs, *egress_cidrs]}

    @property
    def name_to_use(self) -> Literal["public"] | None:
        """Which of a cluster's names clients are given; None: its only one."""
        return None


@dataclass(frozen=True, kw_only=True)
class PrivateAccess:
    """By a private address in the nodes' network alone: whoever runs `pulumi` is in it, or beside it.

    `public_name`: the name that leads to the private address is known to everybody, who is not let in for that.
    Otherwise only hosts whose network is linked to the cluster's private DNS zone know it, and AKS links the nodes' own.
    """

    public_name: bool = False

    def as_profile(self, egress_cidrs: Sequence[Input[str]]) -> ManagedClusterAPIServerAccessProfileArgsDict:
        """How AKS spells it. It takes no ranges for a private address."""
        del egress_cidrs
        return {
            "enable_private_cluster": True,
            "enable_private_cluster_public_fqdn": self.public_name,
            "private_dns_zone": "system",
        }

    @property
    def name_to_use(self) -> Literal["public"] | None:
        """Which of a cluster's names clients are given; None: the private one, which AKS gives by itself."""
        return "public" if self.public_name else None


ApiServerAccess: TypeAlias = PublicAccess | PrivateAccess
