"""From where the API server is reached. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input
    from pulumi_aws.eks import ClusterVpcConfigArgsDict


@dataclass(frozen=True, kw_only=True)
class EndpointAccess:
    """Ranges of addresses that reach the API server.

    `public_cidrs` over the internet; with none there is no public endpoint. `private_cidrs` from inside the VPC or a
    network connected to it: nodes get in without being named, everybody else there does not.
    """

    public_cidrs: Sequence[str] = ()
    private_cidrs: Sequence[str] = ()

    def as_vpc_config(self, subnet_ids: Sequence[Input[str]]) -> ClusterVpcConfigArgsDict:
        """The network of a cluster in these subnets.

        The private endpoint is always on: through the public one nodes would be among those who need naming.
        """
        private: ClusterVpcConfigArgsDict = {
            "subnet_ids": list(subnet_ids),
            "endpoint_private_access": True,
            "endpoint_public_access": bool(self.public_cidrs),
        }
        return {**private, "public_access_cidrs": list(self.public_cidrs)} if self.public_cidrs else private
