"""AKS: how its clusters get nodes, and how Azure evicts a spot node."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from holdfast.rehearsal.scenarios.karpenter import Karpenter, wait_until_gone
from holdfast.rehearsal.scenarios.node_termination import EVICTED, ORPHANED, NodeDrain, lose_node
from holdfast.rehearsal.scenarios.provisioning import Interruption
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import CAPACITY_TYPE, GPU_RESOURCE, ON_DEMAND, SPOT
from holdfast.simulator.cluster_autoscaler.node_groups import NodeGroup, ScaleSets
from holdfast.simulator.cluster_autoscaler.observation import empty_nodes
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.stacks.cluster_nodes import ClusterNodes

# Azure gives up to 30 s on a best-effort basis, and often less than 10 s.
NOTICE_SECONDS: Final = 8.0


@dataclass(frozen=True)
class NodeAutoProvisioning(Karpenter):
    """Node auto-provisioning: AKS runs Karpenter for the NodePools of a cluster.

    It gets no notice of an eviction (Azure/karpenter-provider-azure #1594), so pods are not evicted before it.
    """

    @property
    def disruption(self) -> str:
        """The pod garbage collector deletes the pods of a node that is gone."""
        return ORPHANED

    def interruption(self, node: str, say: Callable[[str], None]) -> Interruption:
        """Prepare the eviction of a spot node."""
        return EvictionWithoutNotice(client=self.client, node=node, claim=self.claim_of(node), say=say)


@dataclass(frozen=True, kw_only=True)
class EvictionWithoutNotice:
    """An eviction of a spot node without notice.

    Azure deletes the machine, AKS deletes the node that has no machine, and Karpenter removes its finalizer from it.
    """

    client: KubeClient
    node: str
    claim: str
    say: Callable[[str], None]

    def interrupt(self) -> None:
        """Evict it."""
        self.say(f"eviction: node {self.node} is gone at once, without notice to its pods")
        lose_node(self.client, self.node)

    def wait_until_gone(self) -> None:
        """Wait until its NodeClaim is gone."""
        wait_until_gone(self.client, self.claim)


@dataclass(frozen=True, kw_only=True)
class AksScaleSets:
    """AKS's cluster autoscaler makes nodes for the node pools of a cluster, as instances of scale sets."""

    client: KubeClient
    scale_sets: ScaleSets
    nodes: ClusterNodes

    @property
    def disruption(self) -> str:
        """Its pods are evicted with the Eviction API."""
        return EVICTED

    def on_spot(self) -> Json:
        """Return the fields of a pod's spec that select spot."""
        return {"nodeSelector": {CAPACITY_TYPE: SPOT}}

    def on_demand(self) -> Json:
        """Return the fields of a pod's spec that select on-demand."""
        return {"nodeSelector": {CAPACITY_TYPE: ON_DEMAND}}

    def has_plain_spot(self) -> bool:
        """Whether there is a spot pool without GPUs."""
        return any(seen.template.is_spot and not _has_gpus(seen) for seen in self.scale_sets.groups())

    def has_gpus_on_demand(self) -> bool:
        """Whether there is an on-demand pool with GPUs."""
        return any(not seen.template.is_spot and _has_gpus(seen) for seen in self.scale_sets.groups())

    def release_empty_nodes(self) -> None:
        """Delete every empty node at once; the autoscaler would do so after ten minutes."""
        empty = empty_nodes(self.client.list("v1", "Node"), self.client.list("v1", "Pod"))
        if self.scale_sets.end(empty):
            self.nodes.keep(self.scale_sets.machines)

    def interruption(self, node: str, say: Callable[[str], None]) -> Interruption:
        """Prepare the eviction of a spot node."""
        spot = [seen for seen in self.scale_sets.groups() if seen.template.is_spot]
        if not any(one.name == node for seen in spot for one in seen.instances):
            raise RehearsalError(f"node {node} is not a spot node of a node pool: choose one of a spot pool")
        return DrainedEviction(aks=self, node=node, say=say)


@dataclass(frozen=True, kw_only=True)
class DrainedEviction:
    """An eviction with as little notice as Azure often gives.

    AKS gets the notice and drains the node until the time is over; then the machine and the node are deleted. The scale
    set shrinks by one, and the autoscaler makes another node when pods are pending.
    """

    aks: AksScaleSets
    node: str
    say: Callable[[str], None]

    def interrupt(self) -> None:
        """Evict it."""
        self.say(f"eviction: node {self.node} is evicted with {NOTICE_SECONDS:.0f} s of notice")
        with self.aks.nodes.held():
            NodeDrain(client=self.aks.client, node=self.node, seconds=NOTICE_SECONDS, say=self.say).run()
            lose_node(self.aks.client, self.node)
            self.aks.scale_sets.take(self.node)

    def wait_until_gone(self) -> None:
        """Do nothing: the machine is gone when `interrupt` returns."""


def _has_gpus(seen: NodeGroup) -> bool:
    return GPU_RESOURCE in seen.template.capacity
