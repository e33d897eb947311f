"""What Karpenter's permissions are confined to. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.components.iam.aws import Place


@dataclass(frozen=True, kw_only=True)
class ControllerScope:
    """One controller's own cluster, the role its nodes have, and its queue, by name.

    `isolated`: it runs where neither IAM's nor the price list's API can be reached.
    """

    place: Place
    cluster_name: str
    node_role: str
    queue: str
    isolated: bool

    @property
    def ownership_tag(self) -> str:
        """The tag that marks what belongs to the cluster; its value is `owned`."""
        return f"kubernetes.io/cluster/{self.cluster_name}"

    def ec2(self, kind: str) -> str:
        """The EC2 resources of a kind, shared ones of other accounts among them."""
        return f"arn:{self.place.partition}:ec2:{self.place.region}:*:{kind}/*"

    def public_ec2(self, kind: str) -> str:
        """The EC2 resources of a kind that belong to no account (`image`, `snapshot`)."""
        return f"arn:{self.place.partition}:ec2:{self.place.region}::{kind}/*"

    @property
    def instance_profiles(self) -> str:
        """The account's instance profiles."""
        return f"arn:{self.place.partition}:iam::{self.place.account}:instance-profile/*"
