"""Where a pool's machines stand to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi import ComponentResource, ResourceOptions
from pulumi_aws.ec2 import PlacementGroup

if TYPE_CHECKING:
    from pulumi import Output


class ClusterPlacement(ComponentResource):
    """Machines close together in one zone, with the shortest way between them.

    Creates a placement group with strategy `cluster`. It narrows what EC2 can sell: machines of one pool in one zone.
    """

    placement_group_id: Output[str]

    def __init__(self, name: str, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ClusterPlacement", name, None, opts)
        group = PlacementGroup(f"{name}-group", strategy="cluster", opts=ResourceOptions(parent=self))
        self.placement_group_id = group.placement_group_id
        self.register_outputs({"placement_group_id": self.placement_group_id})
