"""What AKS upgrades of its own accord. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from pulumi_azure_native.containerservice import ManagedClusterAutoUpgradeProfileArgsDict

#: AKS has channels that go on to the next minor version. With one of them the stack's own version would be a downgrade at
#: the next `up`, which AKS refuses.
ClusterChannel: TypeAlias = Literal["none", "patch"]
NodeOsChannel: TypeAlias = Literal["None", "Unmanaged", "SecurityPatch", "NodeImage"]


@dataclass(frozen=True, kw_only=True)
class Upgrades:
    """The channels of the Kubernetes version and of the nodes' operating system.

    `cluster`: `patch` drains every node for each patch; `none` waits until the stack's version is written anew.
    `node_os`: `NodeImage` drains every node each week, `SecurityPatch` only where a patch cannot be applied to a node
    that runs, `Unmanaged` never, with Ubuntu patching itself at night and nobody watching.
    """

    cluster: ClusterChannel = "none"
    node_os: NodeOsChannel = "SecurityPatch"

    def as_profile(self) -> ManagedClusterAutoUpgradeProfileArgsDict:
        """The channels as AKS spells them."""
        return {"upgrade_channel": self.cluster, "node_os_upgrade_channel": self.node_os}
