"""AKS: how its clusters get nodes, and how Azure evicts a spot node."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.scenarios.karpenter import Karpenter
from pulumi_holdfast.rehearsal.scenarios.node_termination import EVICTED, ORPHANED, asked_grace, lose_node
from pulumi_holdfast.rehearsal.scenarios.provisioning import AutoscaledPools
from pulumi_holdfast.rehearsal.stacks.cluster_nodes import drain, evictable

# Azure gives up to 30 s on a best-effort basis, and often less than 10 s.
NOTICE_SECONDS: Final = 8.0
# The taint that AKS sets on a node it drains.
_DRAINED: Final[Json] = {"key": "remediator.kubernetes.azure.com/unschedulable", "effect": "NoSchedule"}


@dataclass(frozen=True)
class NodeAutoProvisioning(Karpenter):
    """Node auto-provisioning: AKS runs Karpenter for the NodePools of a cluster.

    It gets no notice of an eviction (Azure/karpenter-provider-azure #1594), so pods are not evicted before it.
    """

    @property
    def disruption(self) -> str:
        """The pod garbage collector deletes the pods of a node that is gone."""
        return ORPHANED

    def interruption(self, node: str, say: Callable[[str], None]) -> Callable[[], None]:
        """Return the eviction of a spot node without notice.

        Azure deletes the machine, AKS deletes the node that has no machine, and Karpenter removes its finalizer from it.
        """

        def evict() -> None:
            say(f"eviction: node {node} is gone at once, without notice to its pods")
            lose_node(self.client, node)

        return evict


@dataclass(frozen=True, kw_only=True)
class AksScaleSets(AutoscaledPools):
    """AKS's cluster autoscaler makes nodes for the node pools of a cluster, as instances of scale sets."""

    @property
    def disruption(self) -> str:
        """Its pods are evicted with the Eviction API."""
        return EVICTED

    def interruption(self, node: str, say: Callable[[str], None]) -> Callable[[], None]:
        """Return the eviction of a spot node with as little notice as Azure often gives.

        AKS gets the notice and drains the node until the time is over; then the machine and the node are deleted. The
        scale set shrinks by one, and the autoscaler makes another node when pods are pending.
        """
        self.spot_pool_of(node)

        def evict() -> None:
            say(f"eviction: node {node} is evicted with {NOTICE_SECONDS:.0f} s of notice")
            with self.nodes.held():
                for pod in evictable(self.client.list("v1", "Pod"), node):
                    if (asked := asked_grace(pod)) > NOTICE_SECONDS:
                        say(f"{name_of(pod)} gets {NOTICE_SECONDS:.0f} s of its grace period of {asked} s")
                left = drain(self.client, node, seconds=NOTICE_SECONDS, taint=_DRAINED)
                if left:
                    say(f"node {node} is gone with {', '.join(map(name_of, left))} still on it")
                lose_node(self.client, node)
                self.groups.take(node)

        return evict
