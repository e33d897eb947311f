"""The node class of a pool of Azure's machines under node auto-provisioning. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.components.pools.karpenter import NodeClass

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class AksNodeClassArgs:
    """How a pool's machines are started.

    `disk_gib` is the size of the system disk, 30 to 2048; `tags` are put on the machines.
    """

    disk_gib: int
    tags: Mapping[str, str] = field(default_factory=dict[str, str])


def aks_node_class(args: AksNodeClassArgs) -> NodeClass:
    """The AKSNodeClass of a pool.

    It says little: AKS has the CRD and the controller, and brings both up to date when it likes, so that only fields
    stand here which every version since v1beta1 has had. What it leaves out is the cluster's: the nodes' subnet and the
    key their disks are encrypted with. GPU drivers are AKS's, so that only sizes are bought which it has one for.
    """
    return NodeClass(
        group="karpenter.azure.com",
        version="v1beta1",
        kind="AKSNodeClass",
        spec={
            # Both are what the API server would write in itself; unsaid, they would be differences.
            "imageFamily": "Ubuntu",
            "osDiskSizeGB": args.disk_gib,
            "tags": args.tags,
        },
    )
