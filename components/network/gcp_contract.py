"""What every network on Google Cloud offers a cluster, whether it is made for the stack or brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pulumi import Input


class VpcNativeNetwork(Protocol):
    """A subnetwork of nodes, with a secondary range for pods and one for Services.

    Whatever takes the subnetwork from here is there after, and gone before, all that its traffic goes through.
    """

    @property
    def network_id(self) -> Input[str]:
        """The network's id or link."""
        ...

    @property
    def subnetwork_id(self) -> Input[str]:
        """The subnetwork's id or link."""
        ...

    @property
    def pods_range(self) -> str:
        """The name of the secondary range of pods."""
        ...

    @property
    def services_range(self) -> str:
        """The name of the secondary range of Services."""
        ...
