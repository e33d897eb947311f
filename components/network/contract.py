"""What every network offers, whether it is made for the stack or brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input


class Network(Protocol):
    """A VPC and the private subnets of nodes in it, one for each zone, in the order of the zones.

    Whatever takes a subnet from here is there after, and gone before, all that its traffic goes through.
    """

    @property
    def vpc_id(self) -> Input[str]:
        """The VPC's id."""
        ...

    @property
    def private_subnet_ids(self) -> Sequence[Input[str]]:
        """The ids of the private subnets."""
        ...
