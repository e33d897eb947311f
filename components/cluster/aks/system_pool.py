"""The on-demand nodes that carry cluster services and operators. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.scheduling.labels import SYSTEM, SYSTEM_VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input
    from pulumi_azure_native.containerservice import ManagedClusterAgentPoolProfileArgsDict

#: AKS takes up to 12 small letters and digits.
SYSTEM_POOL: Final = "system"
#: AKS's own services tolerate it, as our operators do; what a job brings does not.
SYSTEM_TAINT: Final = "CriticalAddonsOnly=true:NoSchedule"

_FEWEST: Final = 2


@dataclass(frozen=True, kw_only=True)
class SystemNodesArgs:
    """Nodes without GPUs: `count` of them, two or more, spread over `zones` (`1`, `2`, `3`; none: AKS's choice).

    `vm_size` has four vCPUs or more and is not of the B series: AKS takes no other. Raises ValueError for fewer nodes.
    """

    vm_size: str
    count: int = _FEWEST
    zones: Sequence[str] = ()
    disk_gib: int = 128

    def __post_init__(self) -> None:
        """Refuse a pool that is gone with one machine."""
        if self.count < _FEWEST:
            raise ValueError(f"count is {self.count}: a system pool has {_FEWEST} nodes or more")

    def as_profile(self, *, version: str, subnet_id: Input[str]) -> ManagedClusterAgentPoolProfileArgsDict:
        """The pool as a cluster's own, which AKS cannot be made without.

        Of a fixed size: with node auto-provisioning AKS refuses a pool that grows by itself.
        """
        profile: ManagedClusterAgentPoolProfileArgsDict = {
            "name": SYSTEM_POOL,
            "mode": "System",
            "type": "VirtualMachineScaleSets",
            "os_type": "Linux",
            "vm_size": self.vm_size,
            "count": self.count,
            # Named, so that the nodes follow the control plane to another version; AKS leaves them otherwise.
            "orchestrator_version": version,
            "os_disk_size_gb": self.disk_gib,
            "vnet_subnet_id": subnet_id,
            "node_labels": {SYSTEM: SYSTEM_VALUE},
            "node_taints": [SYSTEM_TAINT],
            # Operators move to a new node before theirs goes.
            "upgrade_settings": {"max_surge": "1"},
        }
        if self.zones:
            profile["availability_zones"] = [*self.zones]
        return profile
