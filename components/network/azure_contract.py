"""What every network on Azure offers a cluster, whether it is made for the stack or brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

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
